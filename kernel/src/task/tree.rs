//! The process tree: processes and threads by id, parents and children, groups and sessions.
//!
//! Two locks, that of threads taken inside that of processes: a thread that starts, or ends without children, needs the
//! first alone. A process enters when it is forked and leaves when it is reaped; a thread leaves when it ends.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::mem::offset_of;
use core::sync::atomic::{AtomicUsize, Ordering};

use linux_abi::Errno;
use machine::describe::Entry;
use machine::sync::{Holder, SpinLock};

use super::process::Phase;
use super::process::family::{Family, Identity, TreeKey};
use super::{PID_MAX, Pid, Process, Thread, ThreadRef, Tid};

/// Ids below this are not reused after the numbers wrapped around.
const FIRST_REUSED: u32 = 300;

struct Tree {
    nodes: BTreeMap<Pid, Node>,
    last: u32,
    /// Ids that were chosen for processes or threads which are not entered yet.
    chosen: Vec<Pid>,
    /// Ids that groups and sessions may use.
    relations: Relations,
    /// What the relations of processes change with.
    key: TreeKey,
}

struct Node {
    process: Arc<Process>,
    /// Each behind its [`Family::parent_thread`]: a thread that ends looks at its own alone.
    children: BTreeSet<(Tid, Pid)>,
}

static TREE: SpinLock<Tree> = SpinLock::new(Tree {
    nodes: BTreeMap::new(),
    last: 0,
    chosen: Vec::new(),
    relations: Relations { first: Pid::MAX, taken: [0; RELATED / 64] },
    key: TreeKey::new(),
});

/// The live threads by id.
static THREADS: SpinLock<BTreeMap<Tid, ThreadRef>> = SpinLock::new(BTreeMap::new());
/// How many [`THREADS`] holds; changes in its critical section.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The maps of threads and of processes in [`machine::describe`]: where each lies, and how a node of `alloc`'s B-tree
/// looks. `map.…` counts from the map, `….node.…` from a node; the values of threads and the `process` of the others
/// are pointers to what an `Arc` holds.
pub static FIELDS: [Entry; 17] = [
    Entry::address("held.process tree", &TREE),
    Entry::address("held.threads", &THREADS),
    Entry::address("threads", &THREADS),
    Entry::number("threads.map", SpinLock::<BTreeMap<Tid, ThreadRef>>::VALUE),
    Entry::number("threads.node.length", 0x8e),
    Entry::number("threads.node.values", 0x08),
    Entry::number("threads.node.size", size_of::<ThreadRef>()),
    Entry::number("threads.node.edges", 0x90),
    Entry::address("processes", &TREE),
    Entry::number("processes.map", SpinLock::<Tree>::VALUE + offset_of!(Tree, nodes)),
    Entry::number("processes.node.length", 0x196),
    Entry::number("processes.node.values", offset_of!(Node, process)),
    Entry::number("processes.node.size", size_of::<Node>()),
    Entry::number("processes.node.edges", 0x198),
    Entry::number("map.root", 0x00),
    Entry::number("map.height", 0x08),
    Entry::number("map.count", 0x10),
];

fn enter_thread(thread: &ThreadRef) {
    let mut threads = THREADS.lock();
    threads.insert(thread.tid(), thread.clone());
    COUNT.store(threads.len(), Ordering::Relaxed);
}

/// The process with this id, zombies included.
pub fn process(pid: Pid) -> Option<Arc<Process>> {
    TREE.lock().nodes.get(&pid).map(|node| node.process.clone())
}

/// The live thread with this id.
pub fn thread(tid: Tid) -> Option<ThreadRef> {
    THREADS.lock().get(&tid).cloned()
}

/// Looks at every process, zombies included, until `visit` gives something. `visit` must not come back here.
pub fn find_process<T>(mut visit: impl FnMut(&Arc<Process>) -> Option<T>) -> Option<T> {
    TREE.lock().nodes.values().find_map(|node| visit(&node.process))
}

/// Every process, zombies included, by rising id.
pub fn all_processes() -> Vec<Arc<Process>> {
    TREE.lock().nodes.values().map(|node| node.process.clone()).collect()
}

/// The process with the smallest id at or above `from`, for listings.
pub fn next_process(from: Pid) -> Option<Arc<Process>> {
    TREE.lock().nodes.range(from..).next().map(|(_, node)| node.process.clone())
}

/// Looks at every live thread and every zombie, for dumps: `None` if the tree is locked. `thread` and `zombie` must not
/// come back here.
pub fn try_visit(thread: &mut dyn FnMut(&ThreadRef) -> bool, zombie: &mut dyn FnMut(&Process) -> bool) -> Option<()> {
    let (tree, threads) = (TREE.try_lock()?, THREADS.try_lock()?);
    let _ = threads.values().all(thread)
        && tree.nodes.values().filter(|node| node.process.life.try_is_zombie()).all(|node| zombie(&node.process));
    Some(())
}

/// Every live thread, by its id.
pub struct Threads<'t>(&'t BTreeMap<Tid, ThreadRef>);

impl<'t> Threads<'t> {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &'t ThreadRef> + use<'t> {
        self.0.values()
    }

    /// The one with this id.
    pub fn get(&self, tid: Tid) -> Option<&'t ThreadRef> {
        self.0.get(&tid)
    }
}

/// Looks at the live threads, for watchdogs and dumps: `None` if their lock is taken. `look` must not come back here.
pub fn try_threads<T>(look: impl FnOnce(&Threads<'_>) -> T) -> Option<T> {
    Some(look(&Threads(&*THREADS.try_lock()?)))
}

/// The holder of the tree's lock, for dumps.
pub fn holder() -> Option<Holder> {
    TREE.holder()
}

/// The holder of the lock of live threads, for dumps.
pub fn holder_of_threads() -> Option<Holder> {
    THREADS.holder()
}

/// How many threads there are, as of now. Takes no lock.
pub fn thread_count() -> usize {
    COUNT.load(Ordering::Relaxed)
}

/// The id handed out last (`/proc/loadavg`).
pub fn last_pid() -> Pid {
    TREE.lock().last
}

/// Every live member of the group with this number.
pub fn group_members(pgid: Pid) -> Vec<Arc<Process>> {
    members(|process| process.pgid() == pgid)
}

/// Every live member of this very group.
pub fn members_of(group: Identity) -> Vec<Arc<Process>> {
    members(|process| process.family.group_identity() == group)
}

fn members(is_member: impl Fn(&Process) -> bool) -> Vec<Arc<Process>> {
    let tree = TREE.lock();
    let members = tree.nodes.values().filter(|node| is_member(&node.process) && !node.process.is_zombie());
    members.map(|node| node.process.clone()).collect()
}

/// What has a number now.
#[derive(Clone)]
pub enum Named {
    /// A process, maybe a zombie, or the group that one led which is gone.
    Process(Identity),
    /// A thread that is not the first of its process.
    Thread(Weak<Thread>),
    /// A session only, which gets no signals.
    Session,
}

/// What has the number `id`, if it is in use.
pub fn named(id: Pid) -> Option<Named> {
    let tree = TREE.lock();
    if let Some(node) = tree.nodes.get(&id) {
        return Some(Named::Process(node.process.family.identity()));
    }
    if let Some(thread) = THREADS.lock().get(&id) {
        return Some(Named::Thread(Arc::downgrade(thread)));
    }
    let families = || tree.nodes.values().map(|node| &node.process.family);
    let group = families().map(Family::group_identity).find(|group| group.id() == id);
    let is_session = || families().any(|family| family.with_session(|session| session.id == id));
    group.map(Named::Process).or_else(|| is_session().then_some(Named::Session))
}

/// An id that [`allocate_this`] took, kept from others until this is dropped.
pub struct Taken(Pid);

impl Taken {
    /// The id that was taken.
    pub fn id(&self) -> Pid {
        self.0
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        TREE.lock().chosen.retain(|id| *id != self.0);
    }
}

/// Takes this id; EEXIST if it is a process's, a thread's, a group's or a session's.
pub fn allocate_this(id: Pid) -> Result<Taken, Errno> {
    let mut tree = TREE.lock();
    let named = |node: &Node| node.process.pgid() == id || node.process.sid() == id;
    let is_thread = THREADS.lock().contains_key(&id);
    let used = tree.nodes.contains_key(&id) || is_thread || tree.nodes.values().any(named);
    if used || tree.chosen.contains(&id) {
        return Err(Errno::EEXIST);
    }
    tree.chosen.push(id);
    tree.relations.note(id);
    Ok(Taken(id))
}

/// An id that is free: not a process, thread, group or session.
pub fn allocate() -> Result<Pid, Errno> {
    let tree = &mut *TREE.lock();
    for _ in 0..PID_MAX {
        tree.last += 1;
        if tree.last >= PID_MAX {
            tree.last = FIRST_REUSED;
            tree.relations.first = Pid::MAX;
        }
        let id = tree.last;
        let taken = tree.nodes.contains_key(&id) || THREADS.lock().contains_key(&id) || tree.chosen.contains(&id);
        if !taken && (id < FIRST_REUSED || !tree.relations.has(&tree.nodes, &tree.chosen, id)) {
            return Ok(id);
        }
    }
    Err(Errno::EAGAIN)
}

/// Ids whose use by groups and sessions is looked up at a time: programs choose how many in a row are those of groups
/// whose leaders are gone.
const RELATED: usize = 4096;

/// Which of the ids from `first` on may be a group's or a session's, or become one.
///
/// Ids are handed out in their order, and a group or session has that of a process; so of ids that were free at the
/// look and not handed out since, none becomes one, but for those that a program takes out of the order
/// ([`Relations::note`]).
struct Relations {
    first: Pid,
    taken: [u64; RELATED / 64],
}

impl Relations {
    /// Whether `id` may be, by a look at all processes if the last one was for other ids.
    fn has(&mut self, nodes: &BTreeMap<Pid, Node>, chosen: &[Pid], id: Pid) -> bool {
        let at = self.offset(id).unwrap_or_else(|| {
            (self.first, self.taken) = (id, [0; RELATED / 64]);
            let used = nodes.values().flat_map(|node| [node.process.pid, node.process.pgid(), node.process.sid()]);
            used.chain(chosen.iter().copied()).for_each(|id| self.note(id));
            0
        });
        self.taken[at / 64] >> (at % 64) & 1 != 0
    }

    /// `id` may be one from now on.
    fn note(&mut self, id: Pid) {
        if let Some(at) = self.offset(id) {
            self.taken[at / 64] |= 1 << (at % 64);
        }
    }

    fn offset(&self, id: Pid) -> Option<usize> {
        id.checked_sub(self.first).map(|at| at as usize).filter(|at| *at < RELATED)
    }
}

/// Enters a new process with its first thread, made by the thread `maker`, as a child of its parent; as a sibling of
/// `sibling`, if given (`CLONE_PARENT`).
pub fn add_process(process: &Arc<Process>, maker: Tid, sibling: Option<&Process>, thread: &ThreadRef) {
    // First: what finds the process finds its thread.
    enter_thread(thread);
    let tree = &mut *TREE.lock();
    match sibling {
        // Under the lock: their parent may have ended since the clone began, and its number may belong to another.
        Some(sibling) => process.family.join_sibling(&tree.key, &sibling.family),
        None => process.family.set_parent_thread(&tree.key, maker),
    }
    if let Some(node) = tree.nodes.get_mut(&process.ppid()) {
        node.children.insert((process.family.parent_thread(), process.pid));
        node.process.family.set_children(&tree.key, node.children.len());
    }
    tree.nodes.insert(process.pid, Node { process: process.clone(), children: BTreeSet::new() });
}

/// Enters a further thread.
pub fn add_thread(thread: &ThreadRef) {
    enter_thread(thread);
}

/// A thread ended: its children now belong to another thread of its process, unless it was the last. Returns them.
pub fn remove_thread(process: &Process, tid: Tid) -> Vec<Arc<Process>> {
    let mut threads = THREADS.lock();
    let gone = threads.remove(&tid);
    COUNT.store(threads.len(), Ordering::Relaxed);
    drop(threads);
    drop(gone);
    // Its own children it has counted itself, those of another thread that ended were counted before that gave them to
    // this one, and that was before this one left the list above.
    if process.family.has_children() { hand_over_children(&mut TREE.lock(), process, tid) } else { Vec::new() }
}

fn hand_over_children(tree: &mut Tree, process: &Process, from: Tid) -> Vec<Arc<Process>> {
    let Some(node) = tree.nodes.get(&process.pid) else { return Vec::new() };
    let own: Vec<_> = node.children.range((from, 0)..=(from, Pid::MAX)).copied().collect();
    if own.is_empty() {
        return Vec::new();
    }
    let threads = THREADS.lock();
    let goes_on = |tid: &Tid| *tid != from && threads.contains_key(tid);
    let heir = process.threads.with(|threads| threads.iter().map(|thread| thread.tid()).find(goes_on));
    drop(threads);
    let Some(heir) = heir else { return Vec::new() };
    tree.adopt(process.pid, &own, heir)
}

impl Tree {
    /// Some of the children of the process `pid` become those of its thread `heir`.
    fn adopt(&mut self, pid: Pid, own: &[(Tid, Pid)], heir: Tid) -> Vec<Arc<Process>> {
        if let Some(node) = self.nodes.get_mut(&pid) {
            for child in own {
                node.children.remove(child);
            }
            node.children.extend(own.iter().map(|(_, child)| (heir, *child)));
        }
        let moved: Vec<_> = own.iter().filter_map(|(_, pid)| Some(self.nodes.get(pid)?.process.clone())).collect();
        for child in &moved {
            child.family.set_parent_thread(&self.key, heir);
        }
        moved
    }
}

/// The one thread left of a process takes over the id of its first (execve(2)).
pub fn take_over(thread: &Thread) {
    let mut tree = TREE.lock();
    let pid = thread.process.pid;
    let mut threads = THREADS.lock();
    if let Some(me) = threads.remove(&thread.tid()) {
        thread.set_tid(pid);
        threads.insert(pid, me);
    }
    drop(threads);
    let all: Vec<_> = tree.nodes.get(&pid).map_or(Vec::new(), |node| node.children.iter().copied().collect());
    tree.adopt(pid, &all, pid);
}

/// Looks through the children of `pid` until `visit` gives something; whether there were any it was asked about.
pub fn find_child<T>(pid: Pid, mut visit: impl FnMut(&Arc<Process>) -> Option<T>) -> Option<T> {
    let tree = TREE.lock();
    let node = tree.nodes.get(&pid)?;
    node.children.iter().find_map(|(_, child)| visit(&tree.nodes.get(child)?.process))
}

/// Takes a reaped process out. Whether it was still there.
pub fn remove_process(pid: Pid) -> bool {
    let mut guard = TREE.lock();
    let tree = &mut *guard;
    let Some(gone) = tree.nodes.remove(&pid) else { return false };
    let parent = gone.process.ppid();
    if let Some(node) = tree.nodes.get_mut(&parent)
        && node.children.remove(&(gone.process.family.parent_thread(), pid))
    {
        node.process.family.set_children(&tree.key, node.children.len());
    }
    drop(guard);
    // Not left to its last reference, which a thread that is just ending may hold.
    gone.process.accounting.release_charge();
    gone.process.signals.pending.clear();
    drop(gone);
    true
}

/// Gives the children of a dying process to the nearest subreaper or init; the new parent, and the children.
pub fn reparent_children(dying: &Process) -> Option<(Arc<Process>, Vec<Arc<Process>>)> {
    // Its last thread asks: of those that could make or reap children none is left.
    if !dying.family.has_children() {
        return None;
    }
    let tree = &mut *TREE.lock();
    let orphans = core::mem::take(&mut tree.nodes.get_mut(&dying.pid)?.children);
    dying.family.set_children(&tree.key, 0);
    if orphans.is_empty() {
        return None;
    }
    let mut heir = dying.ppid();
    while heir > 1 {
        let node = tree.nodes.get(&heir)?;
        if node.process.family.is_subreaper() && !node.process.life.is_ending() {
            break;
        }
        heir = node.process.ppid();
    }
    let heir = heir.max(1);
    let processes: Vec<Arc<Process>> =
        orphans.iter().filter_map(|(_, pid)| Some(tree.nodes.get(pid)?.process.clone())).collect();
    let heirs_thread = tree.nodes.get(&heir)?.process.threads.first().map_or(heir, |thread| thread.tid());
    for orphan in &processes {
        orphan.family.reparent(&tree.key, heir, heirs_thread);
    }
    let node = tree.nodes.get_mut(&heir)?;
    node.children.extend(orphans.iter().map(|(_, pid)| (heirs_thread, *pid)));
    node.process.family.set_children(&tree.key, node.children.len());
    Some((node.process.clone(), processes))
}

/// Whether a group is orphaned: no member has a parent in another group of the same session.
pub fn is_orphaned(pgid: Pid) -> bool {
    let tree = TREE.lock();
    !tree.nodes.values().any(|node| node.process.pgid() == pgid && tree.anchors(&node.process))
}

/// The members of those of `groups` that are orphaned, as if `without` did not exist, and have a stopped member. Looks
/// at each process a few times, however many the groups are.
pub fn left_stopped(groups: &BTreeSet<Pid>, without: Pid) -> Vec<Arc<Process>> {
    let tree = TREE.lock();
    let processes = || tree.nodes.values().map(|node| &node.process);
    let mut stopped = BTreeSet::new();
    for process in processes().filter(|process| groups.contains(&process.pgid()) && process.pid != without) {
        if process.life.phase() == Phase::Stopped {
            stopped.insert(process.pgid());
        }
    }
    if stopped.is_empty() {
        return Vec::new();
    }
    for process in processes().filter(|process| process.pid != without) {
        let group = process.pgid();
        if stopped.contains(&group) && tree.anchors(process) {
            stopped.remove(&group);
        }
    }
    processes().filter(|process| stopped.contains(&process.pgid()) && !process.is_zombie()).cloned().collect()
}

impl Tree {
    /// Whether a process keeps its group from being orphaned.
    fn anchors(&self, process: &Process) -> bool {
        let Some(parent) = self.nodes.get(&process.ppid()).map(|node| &node.process) else { return false };
        !process.is_zombie() && parent.pid != 1 && parent.pgid() != process.pgid() && parent.sid() == process.sid()
    }
}

/// `setpgid`: moves `target` (itself or a child of `caller`) to group `pgid`.
pub fn set_group(caller: &Process, target: Pid, pgid: Pid) -> Result<(), Errno> {
    let tree = TREE.lock();
    let process = &tree.nodes.get(&target).ok_or(Errno::ESRCH)?.process;
    if process.pid != caller.pid {
        if process.ppid() != caller.pid {
            return Err(Errno::ESRCH);
        }
        if process.sid() != caller.sid() {
            return Err(Errno::EPERM);
        }
        if process.family.executions() != 0 {
            return Err(Errno::EACCES);
        }
    }
    if process.sid() == process.pid {
        return Err(Errno::EPERM);
    }
    let group = if pgid == process.pid {
        process.family.identity()
    } else {
        let is_member = |node: &&Node| node.process.pgid() == pgid && node.process.sid() == caller.sid();
        tree.nodes.values().find(is_member).ok_or(Errno::EPERM)?.process.family.group_identity()
    };
    process.family.join_group(&tree.key, group);
    Ok(())
}

/// `setsid`: makes `process` the leader of a new session and group.
pub fn new_session(process: &Process) -> Result<Pid, Errno> {
    let tree = TREE.lock();
    if tree.nodes.values().any(|node| node.process.pgid() == process.pid) {
        return Err(Errno::EPERM);
    }
    process.family.lead_session(&tree.key);
    Ok(process.pid)
}
