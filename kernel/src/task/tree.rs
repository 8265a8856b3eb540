//! The process tree: processes and threads by id, parents and children, groups and sessions.
//!
//! Two locks, that of threads taken inside that of processes: a thread that starts, or ends without children, needs the
//! first alone. A process enters when it is forked and leaves when it is reaped; a thread leaves when it ends.
//!
//! A user may have tens of thousands of processes, in one group or as the children of one, and all others need this
//! lock: a search looks at a few hundred of them at most before it lets others have it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::mem::offset_of;
use core::sync::atomic::{AtomicUsize, Ordering};

use linux_abi::Errno;
use machine::describe::Entry;
use machine::sync::{Holder, SpinLock};

use super::process::Phase;
use super::process::family::{Identity, TreeKey};
use super::{PID_MAX, Pid, Process, Thread, ThreadRef, Tid};
use crate::sched;

/// Ids below this are not reused after the numbers wrapped around.
const FIRST_REUSED: u32 = 300;

/// Processes that are looked at while the tree is locked.
const LOOKED_AT: usize = 256;

struct Tree {
    nodes: BTreeMap<Pid, Node>,
    /// The processes by their groups, as [`member`] numbers them.
    members: BTreeSet<u64>,
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
    /// Each behind its `Family::parent_thread`: a thread that ends looks at its own alone.
    children: BTreeSet<(Tid, Pid)>,
}

static TREE: SpinLock<Tree> = SpinLock::new(Tree {
    nodes: BTreeMap::new(),
    members: BTreeSet::new(),
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

/// A process of a group as one number, which is compared at once: the group's above its own.
fn member(pgid: Pid, pid: Pid) -> u64 {
    u64::from(pgid) << 32 | u64::from(pid)
}

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

/// Every process, zombies included, by rising id. Others run in between.
pub fn all_processes() -> Vec<Arc<Process>> {
    let mut all: Vec<Arc<Process>> = Vec::new();
    loop {
        let from = all.last().map_or(0, |process| process.pid + 1);
        let before = all.len();
        all.extend(TREE.lock().nodes.range(from..).take(LOOKED_AT).map(|(_, node)| node.process.clone()));
        if all.len() < before + LOOKED_AT {
            return all;
        }
        sched::breathe();
    }
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

/// Every live member of the group with this number. Others run in between.
pub fn group_members(pgid: Pid) -> Vec<Arc<Process>> {
    members(pgid, |_| true)
}

/// Every live member of this very group. Others run in between.
pub fn members_of(group: Identity) -> Vec<Arc<Process>> {
    members(group.id(), |process| process.family.group_identity() == group)
}

fn members(pgid: Pid, is_member: impl Fn(&Process) -> bool) -> Vec<Arc<Process>> {
    let mut found = Vec::new();
    let mut from = 0;
    loop {
        let tree = TREE.lock();
        let mut looked = 0;
        for process in tree.group(pgid, from).take(LOOKED_AT) {
            (looked, from) = (looked + 1, process.pid + 1);
            if is_member(process) && !process.is_zombie() {
                found.push(process.clone());
            }
        }
        drop(tree);
        if looked < LOOKED_AT {
            return found;
        }
        sched::breathe();
    }
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
    let group = tree.group(id, 0).next().map(|process| process.family.group_identity());
    drop(tree);
    group.map(Named::Process).or_else(|| is_session(id).then_some(Named::Session))
}

/// Whether a process is in the session with this number. Others run in between.
fn is_session(id: Pid) -> bool {
    let mut from = 0;
    loop {
        let tree = TREE.lock();
        let mut looked = 0;
        for (pid, node) in tree.nodes.range(from..).take(LOOKED_AT) {
            (looked, from) = (looked + 1, pid + 1);
            if node.process.family.with_session(|session| session.id == id) {
                return true;
            }
        }
        drop(tree);
        if looked < LOOKED_AT {
            return false;
        }
        sched::breathe();
    }
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
    tree.members.insert(member(process.pgid(), process.pid));
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
            node.process.family.count_move(&self.key);
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

/// Looks through the children of `pid` until `visit` gives something. Others run in between: a child that comes
/// meanwhile may be passed over.
pub fn find_child<T>(pid: Pid, mut visit: impl FnMut(&Arc<Process>) -> Option<T>) -> Option<T> {
    let (mut from, mut moves) = ((0, 0), None);
    loop {
        let tree = TREE.lock();
        let node = tree.nodes.get(&pid)?;
        let now = node.process.family.moves();
        if moves.replace(now).is_some_and(|before| before != now) {
            from = (0, 0);
        }
        let mut looked = 0;
        for (tid, child) in node.children.range(from..).take(LOOKED_AT) {
            (looked, from) = (looked + 1, (*tid, child + 1));
            let found = tree.nodes.get(child).and_then(|child| visit(&child.process));
            if found.is_some() {
                return found;
            }
        }
        drop(tree);
        if looked < LOOKED_AT {
            return None;
        }
        sched::breathe();
    }
}

/// Looks at the process `child`, if it is a child of `pid`.
pub fn find_this_child<T>(pid: Pid, child: Pid, visit: impl FnOnce(&Arc<Process>) -> Option<T>) -> Option<T> {
    let tree = TREE.lock();
    let process = &tree.nodes.get(&child)?.process;
    if process.ppid() == pid { visit(process) } else { None }
}

/// Takes a reaped process out. Whether it was still there.
pub fn remove_process(pid: Pid) -> bool {
    let mut guard = TREE.lock();
    let tree = &mut *guard;
    let Some(gone) = tree.nodes.remove(&pid) else { return false };
    tree.members.remove(&member(gone.process.pgid(), pid));
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

/// Gives some of the children of a dying process to the nearest subreaper or init; the new parent, and the children.
/// `None` once there are no more: its last thread asks, so that none but siblings of children left ([`add_process`])
/// come meanwhile.
pub fn reparent_children(dying: &Process) -> Option<(Arc<Process>, Vec<Arc<Process>>)> {
    if !dying.family.has_children() {
        return None;
    }
    let tree = &mut *TREE.lock();
    let node = tree.nodes.get_mut(&dying.pid)?;
    let orphans: Vec<_> = node.children.extract_if(.., |_| true).take(LOOKED_AT).collect();
    dying.family.set_children(&tree.key, node.children.len());
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
    !tree.group(pgid, 0).any(|process| tree.anchors(process))
}

/// The members of those of `groups` that are orphaned, as if `without` did not exist, and have a stopped member. Looks
/// at each member a few times; others run in between.
pub fn left_stopped(groups: &BTreeSet<Pid>, without: Pid) -> Vec<Arc<Process>> {
    let mut found = Vec::new();
    for group in groups {
        let tree = TREE.lock();
        let members = || tree.group(*group, 0).filter(|process| process.pid != without);
        if members().any(|process| process.life.phase() == Phase::Stopped)
            && !members().any(|process| tree.anchors(process))
        {
            found.extend(members().filter(|process| !process.is_zombie()).cloned());
        }
        drop(tree);
        sched::breathe();
    }
    found
}

impl Tree {
    /// The processes of a group from the id `from` on, zombies included.
    fn group(&self, pgid: Pid, from: Pid) -> impl Iterator<Item = &Arc<Process>> {
        let members = self.members.range(member(pgid, from)..=member(pgid, Pid::MAX));
        members.filter_map(|member| self.nodes.get(&(*member as Pid)).map(|node| &node.process))
    }

    /// Changes the group of `process` by `change`.
    fn regroup(&mut self, process: &Process, change: impl FnOnce(&TreeKey)) {
        self.members.remove(&member(process.pgid(), process.pid));
        change(&self.key);
        self.members.insert(member(process.pgid(), process.pid));
    }

    /// Whether a process keeps its group from being orphaned.
    fn anchors(&self, process: &Process) -> bool {
        let Some(parent) = self.nodes.get(&process.ppid()).map(|node| &node.process) else { return false };
        !process.is_zombie() && parent.pid != 1 && parent.pgid() != process.pgid() && parent.sid() == process.sid()
    }
}

/// `setpgid`: moves `target` (itself or a child of `caller`) to group `pgid`.
pub fn set_group(caller: &Process, target: Pid, pgid: Pid) -> Result<(), Errno> {
    let mut tree = TREE.lock();
    let process = tree.nodes.get(&target).ok_or(Errno::ESRCH)?.process.clone();
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
        // All of a group are in one session.
        let member = tree.group(pgid, 0).next().filter(|member| member.sid() == caller.sid());
        member.ok_or(Errno::EPERM)?.family.group_identity()
    };
    tree.regroup(&process, |key| process.family.join_group(key, group));
    Ok(())
}

/// `setsid`: makes `process` the leader of a new session and group.
pub fn new_session(process: &Process) -> Result<Pid, Errno> {
    let mut tree = TREE.lock();
    if tree.group(process.pid, 0).next().is_some() {
        return Err(Errno::EPERM);
    }
    tree.regroup(process, |key| process.family.lead_session(key));
    Ok(process.pid)
}
