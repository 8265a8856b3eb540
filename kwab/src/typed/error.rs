//! Why a value cannot be shown: what an expression or a choice of stack asks for and the dump has not.

/// Why nothing can be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrintError {
    /// No image at hand has DWARF.
    #[error("no image of the dump has debug information; give its file or directory with --symbols")]
    NoDebugInfo,
    /// There is no such frame.
    #[error("there is no frame {number}; the stack has {frames}")]
    NoFrame {
        /// The number that was asked for.
        number: usize,
        /// Frames that there are.
        frames: usize,
    },
    /// The dump has no registers of the thread.
    #[error("the dump has no registers of thread {0}")]
    NoThread(u32),
    /// The dump has no idle thread.
    #[error(
        "thread 0 is the idle thread of a processor, and the dump has registers of none that idled; \
         `kwab inspect --section regs,tasks` lists the threads that it has"
    )]
    NoIdle,
    /// Several processors have one.
    #[error("thread 0 is the idle thread of each processor, and the dump has those of CPUs {0}; choose with --cpu")]
    SeveralIdle(String),
    /// The processor that was chosen has none.
    #[error("the dump has no idle thread of CPU {cpu}; it has those of CPUs {listed}")]
    NotIdle {
        /// The processor that was asked for.
        cpu: u32,
        /// Those that there are.
        listed: String,
    },
    /// The name is neither a variable of the frame nor a static.
    #[error("no variable of the frame and no static is called {0}")]
    Unknown(String),
    /// Several statics have the name.
    #[error("several statics are called that: {0}")]
    Ambiguous(String),
    /// A step does not fit the value's type.
    #[error("{step} does not fit a value of type {type_name}")]
    Unfit {
        /// The step as it was written.
        step: String,
        /// Name of the type.
        type_name: String,
    },
}
