/* Membership, and plans that all adopt.
 *
 * Node 0 is the member that the others have an opinion of. It answers or not,
 * starts again with its disk or without, and leaves. Every node has plan
 * records. The rules are those of daemon/runtime/membership/
 * member_table.h and member_news.h, runtime/gossip/record_book.h,
 * app/network/plan_orders.h and runtime/following/plan_follower.h. README.md in
 * this folder says what is shown, for which bounds, and what is left out.
 *
 *   REFUTED    Where nothing more can happen, all believe of node 0 what it
 *              says of itself: it is alive if it answers, whoever suspected it,
 *              and dead or gone otherwise.
 *   FINAL      Nobody who is dead or has left comes back with the incarnation
 *              it had.
 *   FORWARD    No node goes from a plan to an older one.
 *   ONE_PLAN   Where nothing more can happen, all have the newest plan, and the
 *              same participants of it.
 *
 * Bounds (-D)
 *   N         nodes, 2 to 4, in a line; with RING in a ring of 3
 *   SUSPECTS  how often node 0 is suspected though it answers, in all
 *   ENDS      how often it ends, in all
 *   LEAVES    how often it says goodbye and ends, in all
 *   STARTS    how often it starts again, in all
 *   CUTS      links that are lost with what is on them, in all
 *   FORGETS   how often somebody forgets it when it is dead, in all
 *   QUEUE     frames on their way on a directed edge
 *   APPLIES   plans that people bring to some node, in all
 *   FAULT     a planted fault: README.md
 *   TORN      1: node 0 may end while it takes a plan that a person brings
 *   FULL      1: a disk may have room for a plan and not for its record
 *   STEP      atomic, or d_step: faster, but what is never reached stays
 *             unknown
 */
#ifndef N
#define N 3
#endif
#ifndef SUSPECTS
#define SUSPECTS 1
#endif
#ifndef ENDS
#define ENDS 1
#endif
#ifndef STARTS
#define STARTS 1
#endif
#ifndef LEAVES
#define LEAVES 0
#endif
#ifndef CUTS
#define CUTS 0
#endif
#ifndef FORGETS
#define FORGETS 0
#endif
#ifndef APPLIES
#define APPLIES 0
#endif
#ifndef QUEUE
#define QUEUE 1
#endif
#ifndef FAULT
#define FAULT 0
#endif
#ifndef TORN
#define TORN 0
#endif
#ifndef FULL
#define FULL 0
#endif

#ifndef STEP
#define STEP atomic
#endif

/* Directed edges, two for each pair. Edge e runs from FROM(e) to TO(e), and
 * e ^ 1 is the other way round. */
#ifdef RING
#define EDGES (2 * N)
#else
#define EDGES (2 * (N - 1))
#endif
#define FROM(e) ((((e) + 1) / 2) % N)
#define TO(e) FROM((e) ^ 1)

/* States of a member, in the order in which they hold. */
#define UNKNOWN 0
#define ALIVE 1
#define SUSPECT 2
#define DEAD 3
#define LEFT 4
#define PRESENT(s) ((s) == ALIVE || (s) == SUSPECT)

/* An incarnation is starts * LIFE + refutations. */
#define LIFE 16

/* What node i believes of node 0; with i = 0, what node 0 says of itself. Its
 * memory tells two of one incarnation apart. */
byte inc[N];
byte state[N];
byte memory[N];

bit up;      /* node 0 runs */
byte starts; /* of node 0, as on its disk; 0: it never ran */
bit linked[EDGES / 2];
bit news[EDGES]; /* FROM(e) is to tell TO(e) what it believes */

/* Frames on their way: what they are about, and a statement or a plan. */
#define ABOUT_MEMBER 0
#define ABOUT_PLAN 1
chan net[EDGES] = [QUEUE] of { byte, byte, byte, byte };

#if SUSPECTS > 0
byte suspects;
#endif
#if ENDS > 0
byte ends;
#endif
#if STARTS > 0
byte restarts;
#endif
#if LEAVES > 0
byte leaves;
#endif
#if CUTS > 0
byte cuts;
#endif
#if FORGETS > 0
byte forgets;
#define QUIET(e) (!news[e] && empty(net[e]))
#if EDGES == 2
#define STILL (QUIET(0) && QUIET(1))
#elif EDGES == 4
#define STILL (QUIET(0) && QUIET(1) && QUIET(2) && QUIET(3))
#else
#define STILL \
  (QUIET(0) && QUIET(1) && QUIET(2) && QUIET(3) && QUIET(4) && QUIET(5))
#endif
#endif

#if APPLIES > 0
/* Plans are ordered by counter, then by hash: a plan is 2 * counter + hash. The
 * hash also says whether the plan names node 0. */
byte applies;
byte book[N];    /* the newest record */
byte kept[N];    /* the plan that the node has taken */
bit owed[N];     /* the newest record is to be taken */
bit tell[EDGES]; /* FROM(e) is to tell TO(e) of its newest record */
#define NAMES(plan) ((plan) % 2 == 1)
#if ENDS + LEAVES == 0
byte newest; /* of all records: with node 0 one may be lost */
#define IS_NEWEST(plan) ((plan) == newest)
#else
#define IS_NEWEST(plan) true
#endif
/* The follower: whether node 0 takes part, as the node was given it; whether it
 * is to look; what it derives, for which plan. */
bit part[N];
bit look[N];
bit again[N];
bit deriving[N];
bit job_part[N];
byte job_plan[N];
#if TORN
bit torn[N]; /* the plan is taken, and is no record yet */
#endif
#if FULL
byte disk[N]; /* the newest record on disk */
#endif
#define RUNS(i) ((i) > 0 || up)
#if TORN
#define FREE(i) !torn[i]
#else
#define FREE(i) true
#endif
#define WANTED_PART(i) (NAMES(kept[i]) && PRESENT(state[i]))
#endif

/* Of a step alone: 0 between steps. */
byte x;
byte f_kind;
byte f_inc;
byte f_state;
byte f_memory;

/* ------------------------------------------------------------- steps ------ */

inline clear(e) {
  do
  :: len(net[e]) > 0 -> net[e] ? f_kind, f_inc, f_state, f_memory
  :: else -> break
  od;
  f_kind = 0;
  f_inc = 0;
  f_state = 0;
  f_memory = 0
}

/* Node n believes something new, and tells all linked but the end of `but`. */
inline flood(n, but) {
  x = 0;
  do
  :: x < EDGES ->
     if
     :: FROM(x) == n && x != (but) && linked[x / 2] -> news[x] = 1
     :: else
     fi;
     x++
  :: else -> break
  od;
  x = 0;
#if APPLIES > 0
  look[n] = 1
#endif
}
#define NOBODY EDGES

/* Node 0 is told of itself: MemberTable::MergeOwn. */
inline merge_own() {
  if
  :: state[0] != ALIVE || f_inc < inc[0]
  :: state[0] == ALIVE && f_inc == inc[0] && f_state == ALIVE &&
     f_memory == memory[0]
  :: else ->
#if FAULT == 1
     inc[0] = f_inc;
#else
     inc[0] = f_inc + 1;
#endif
     flood(0, NOBODY)
  fi
}

/* After a start without memory node 0 does not know its incarnation. */
inline older(e) {
#if FAULT != 3
  if
  :: FROM(e) == 0 && linked[(e) / 2] -> news[(e) ^ 1] = 1
  :: else
  fi
#else
  skip
#endif
}

inline change(e, n) {
  assert(state[n] < DEAD || !PRESENT(f_state) || f_inc > inc[n]); /* FINAL */
  if
  :: f_state == DEAD && state[n] == ALIVE -> state[n] = SUSPECT
  :: else -> state[n] = f_state
  fi;
  inc[n] = f_inc;
  if
  :: PRESENT(f_state) -> memory[n] = f_memory
  :: else
  fi;
  flood(n, e ^ 1)
}

/* Node n is told of node 0 over e: MemberTable::Merge, Membership::Apply. */
inline merge(e, n) {
  if
  :: state[n] == UNKNOWN && PRESENT(f_state) -> change(e, n)
  :: state[n] == UNKNOWN && !PRESENT(f_state)
#if FAULT == 2
  :: state[n] != UNKNOWN && f_inc < inc[n] -> older(e)
  :: state[n] != UNKNOWN && f_inc == inc[n] && f_state > state[n] -> older(e)
#else
  :: state[n] != UNKNOWN && f_inc < inc[n] -> older(e)
  :: state[n] != UNKNOWN && f_inc == inc[n] && f_state < state[n] -> older(e)
#endif
  :: state[n] != UNKNOWN && f_inc == inc[n] && f_state == state[n] ->
     if
     :: f_state == ALIVE && f_memory < memory[n] -> older(e)
     :: f_state == ALIVE && f_memory > memory[n] -> change(e, n)
     :: else -> news[e ^ 1] = 0
     fi
  :: else -> change(e, n)
  fi
}

/* A plan of another node is taken into the book: RecordBook::Offer. */
inline take_record(e, n, plan) {
  if
#if FAULT == 4
  :: plan != book[n] ->
#elif FAULT == 5
  :: plan / 2 > book[n] / 2 ->
#else
  :: plan > book[n] ->
#endif
     book[n] = plan;
     owed[n] = (kept[n] != plan);
     announce(n, e ^ 1)
  :: else
  fi
}

inline announce(n, but) {
  x = 0;
  do
  :: x < EDGES ->
     if
     :: FROM(x) == n && x != (but) && linked[x / 2] -> tell[x] = 1
     :: else
     fi;
     x++
  :: else -> break
  od;
  x = 0
}

inline receive(e) {
  net[e] ? f_kind, f_inc, f_state, f_memory;
  if
#if APPLIES > 0
  :: f_kind == ABOUT_PLAN -> take_record(e, TO(e), f_inc)
#endif
  :: f_kind == ABOUT_MEMBER && TO(e) == 0 -> merge_own()
  :: f_kind == ABOUT_MEMBER && TO(e) != 0 -> merge(e, TO(e))
  fi;
  f_kind = 0;
  f_inc = 0;
  f_state = 0;
  f_memory = 0
}

/* The link of a pair comes up. What a former life of node 0 has sent comes no
 * more. */
inline connect(p) {
  if
  :: FROM(2 * (p)) == 0 -> clear(2 * (p))
#ifdef RING
  :: TO(2 * (p)) == 0 -> clear(2 * (p) + 1)
#endif
  :: else
  fi;
  linked[p] = 1;
#if APPLIES > 0
#if FAULT != 6
  tell[2 * (p)] = (book[FROM(2 * (p))] != 0);
  tell[2 * (p) + 1] = (book[TO(2 * (p))] != 0)
#endif
#endif
}

inline forget_link(p) {
  linked[p] = 0;
  news[2 * (p)] = 0;
  news[2 * (p) + 1] = 0;
#if APPLIES > 0
  tell[2 * (p)] = 0;
  tell[2 * (p) + 1] = 0
#endif
}

/* It is lost, with all that is on it. */
inline disconnect(p) {
  clear(2 * (p));
  clear(2 * (p) + 1);
  forget_link(p)
}

/* Node 0 ends. What it has sent may arrive still. */
inline go() {
  up = 0;
  state[0] = LEFT;
  clear(1);
  forget_link(0);
#ifdef RING
  clear(EDGES - 2);
  forget_link(EDGES / 2 - 1);
#endif
#if APPLIES > 0
  owed[0] = 0;
  part[0] = 0;
  look[0] = 0;
  again[0] = 0;
  deriving[0] = 0;
  job_part[0] = 0;
  job_plan[0] = 0;
#if TORN
  torn[0] = 0;
#endif
#if FULL
  book[0] = disk[0];
#endif
#endif
}

inline say_goodbye() {
  if
  :: linked[0] && len(net[0]) < QUEUE ->
     net[0] ! ABOUT_MEMBER, inc[0], LEFT, memory[0]
  :: else
  fi;
#ifdef RING
  if
  :: linked[EDGES / 2 - 1] && len(net[EDGES - 1]) < QUEUE ->
     net[EDGES - 1] ! ABOUT_MEMBER, inc[0], LEFT, memory[0]
  :: else
  fi;
#endif
}

/* Node 0 has lost its disk. */
inline wipe() {
  starts = 0;
#if APPLIES > 0
  book[0] = 0;
  kept[0] = 0;
#if FULL
  disk[0] = 0;
#endif
#endif
}

inline start(memory_now) {
  up = 1;
  starts++;
  inc[0] = starts * LIFE;
  state[0] = ALIVE;
  memory[0] = memory_now;
#if APPLIES > 0
#if (TORN || FULL) && FAULT != 9
  /* The plan is kept with its record: Orders::RestoreRecord. */
  if
  :: kept[0] > book[0] -> book[0] = kept[0]
  :: else
  fi;
#endif
  owed[0] = (book[0] != kept[0]);
  part[0] = WANTED_PART(0)
#endif
}

#if APPLIES > 0
/* The node is given the plan: PlanFollower::Follow. */
inline follow(n) {
  part[n] = WANTED_PART(n);
  look[n] = 1
}

/* What a person brought is a record now: Orders::Spread. */
inline spread(n) {
  if
  :: kept[n] > book[n] ->
     book[n] = kept[n];
#if ENDS + LEAVES == 0
     if
     :: book[n] > newest -> newest = book[n]
     :: else
     fi;
#endif
     owed[n] = 0;
     announce(n, NOBODY)
  :: else -> owed[n] = (book[n] != kept[n])
  fi
}

/* A person brings a plan: PlanTaker::Take, and then Orders::Spread. */
inline apply(n, hash) {
  applies++;
  kept[n] = 2 * (kept[n] / 2 + 1) + hash;
  follow(n);
#if TORN
  torn[n] = 1
#else
  spread(n)
#endif
}
#endif

/* TO(e) would learn from what FROM(e) believes, and the tables differ as far as
 * their digests tell. */
#if FAULT == 7
#define DIFFER(a, b) (PRESENT(state[a]) != PRESENT(state[b]))
#else
#define DIFFER(a, b)                                         \
  (PRESENT(state[a]) != PRESENT(state[b]) ||                 \
   (PRESENT(state[a]) &&                                     \
    (inc[a] != inc[b] || memory[a] != memory[b])))
#endif
#define NEWER(a, b)                                                   \
  (state[a] != UNKNOWN &&                                             \
   (state[b] == UNKNOWN                                               \
        -> PRESENT(state[a])                                          \
        : inc[a] > inc[b] ||                                          \
              (inc[a] == inc[b] &&                                    \
               (state[a] > state[b] ||                                \
                (state[a] == ALIVE && state[b] == ALIVE &&            \
                 memory[a] > memory[b])))))
/* Node 0 would refute it. */
#define REFUTES(a)                                             \
  (state[0] == ALIVE && state[a] != UNKNOWN &&                 \
   (inc[a] > inc[0] ||                                         \
    (inc[a] == inc[0] &&                                       \
     (state[a] != ALIVE || memory[a] != memory[0]))))

/* --------------------------------------------------------- processes ------ */

proctype edge(byte e) {
end:
  do
  :: STEP {
       news[e] && linked[e / 2] && nfull(net[e]) ->
       news[e] = 0;
       net[e] ! ABOUT_MEMBER, inc[FROM(e)], state[FROM(e)], memory[FROM(e)]
     }
  :: STEP { nempty(net[e]) && (TO(e) != 0 || up) -> receive(e) }
  /* Tables that differ are compared: MemberNews::OnDigest. */
  :: STEP {
       linked[e / 2] && !news[e] && TO(e) != 0 && DIFFER(FROM(e), TO(e)) &&
       NEWER(FROM(e), TO(e)) -> news[e] = 1
     }
#if FAULT != 3
  :: STEP {
       linked[e / 2] && !news[e] && TO(e) == 0 && DIFFER(FROM(e), 0) &&
       REFUTES(FROM(e)) -> news[e] = 1
     }
  /* It answers, and may not know what is believed: Membership::LetRefute. */
  :: STEP {
       linked[e / 2] && !news[e] && TO(e) == 0 && state[FROM(e)] > ALIVE &&
       REFUTES(FROM(e)) -> news[e] = 1
     }
#endif
#if APPLIES > 0
  :: STEP {
       tell[e] && linked[e / 2] && nfull(net[e]) ->
       tell[e] = 0;
       net[e] ! ABOUT_PLAN, book[FROM(e)], 0, 0
     }
#endif
  od
}

proctype pair(byte p) {
end:
  do
  :: STEP {
       !linked[p] && (up || (FROM(2 * p) != 0 && TO(2 * p) != 0)) -> connect(p)
     }
#if CUTS > 0
  :: STEP { linked[p] && cuts < CUTS -> cuts++; disconnect(p) }
#endif
  od
}

/* Node 0. */
proctype member() {
end:
  do
  :: STEP { !up && starts == 0 -> start(8) }
#if ENDS > 0
  :: STEP { up && ends < ENDS -> ends++; go() }
#endif
#if LEAVES > 0
  :: STEP { up && leaves < LEAVES -> leaves++; say_goodbye(); go() }
#endif
#if STARTS > 0
  :: STEP {
       !up && starts > 0 && restarts < STARTS ->
       restarts++;
       start(memory[0] + 1)
     }
  :: STEP {
       !up && starts > 0 && restarts < STARTS ->
       restarts++;
       wipe();
       start(memory[0] + 1)
     }
  :: STEP {
       !up && starts > 0 && restarts < STARTS ->
       restarts++;
       wipe();
       start(memory[0] - 1)
     }
#endif
  od
}

/* Another node, as it finds out about node 0: FailureDetector::Judge. */
proctype observer(byte i) {
end:
  do
#if SUSPECTS > 0
  :: STEP {
       up && state[i] == ALIVE && suspects < SUSPECTS ->
       suspects++;
       state[i] = SUSPECT;
       flood(i, NOBODY)
     }
#endif
  :: STEP {
       !up && starts > 0 && state[i] == ALIVE ->
       state[i] = SUSPECT;
       flood(i, NOBODY)
     }
  :: STEP { state[i] == SUSPECT -> state[i] = DEAD; flood(i, NOBODY) }
#if FORGETS > 0
  /* News live for less long than that. */
  :: STEP {
       state[i] >= DEAD && forgets < FORGETS && STILL ->
       forgets++;
       state[i] = UNKNOWN;
       inc[i] = 0;
       memory[i] = 0;
     }
#endif
  od
}

#if APPLIES > 0
/* What node n does about plans. */
proctype planner(byte n) {
end:
  do
  :: STEP { RUNS(n) && applies < APPLIES && FREE(n) -> apply(n, 0) }
  :: STEP { RUNS(n) && applies < APPLIES && FREE(n) -> apply(n, 1) }
#if TORN
  :: STEP { RUNS(n) && torn[n] -> torn[n] = 0; spread(n) }
#endif
#if FULL
  :: STEP { RUNS(n) && disk[n] != book[n] -> disk[n] = book[n] }
#endif
  /* PlanOrders::Try. */
  :: STEP {
       RUNS(n) && owed[n] && FREE(n) ->
       assert(book[n] >= kept[n]); /* FORWARD */
       kept[n] = book[n];
       owed[n] = 0;
       follow(n)
     }
  /* PlanFollower::Look and Take. */
  :: STEP {
       RUNS(n) && look[n] ->
       look[n] = 0;
       if
#if FAULT == 8
       :: deriving[n]
#else
       :: deriving[n] -> again[n] = 1
#endif
       :: !deriving[n] && part[n] != WANTED_PART(n) ->
          deriving[n] = 1;
          job_part[n] = WANTED_PART(n);
          job_plan[n] = kept[n]
       :: else
       fi
     }
  :: STEP {
       RUNS(n) && deriving[n] ->
       deriving[n] = 0;
       if
       :: job_plan[n] != kept[n] -> look[n] = 1
       :: else ->
          part[n] = job_part[n];
          look[n] = look[n] || again[n]
       fi;
       again[n] = 0;
       job_part[n] = 0;
       job_plan[n] = 0
     }
  od
}
#endif

/* ------------------------------------------------------- properties ------- */

#define BELIEVES(i)                                                      \
  (up -> state[i] == ALIVE && inc[i] == inc[0] && memory[i] == memory[0] \
      : !PRESENT(state[i]))
#if APPLIES > 0
#define HAS_PLAN(i)                                              \
  (!RUNS(i) || (IS_NEWEST(book[i]) && book[i] == book[1] &&      \
                kept[i] == book[1] &&                            \
                part[i] == (NAMES(book[1]) && up)))
#else
#define HAS_PLAN(i) true
#endif

/* Runs when nothing else can. */
active proctype last_word() {
end:
  timeout;
  x = 0;
  do
  :: x < N ->
     if
     :: x > 0 -> assert(BELIEVES(x)) /* REFUTED */
     :: else
     fi;
     assert(HAS_PLAN(x)); /* ONE_PLAN */
     x++
  :: else -> break
  od
}

init {
  atomic {
    state[0] = LEFT;
#if N > 2
    /* Others are linked when node 0 comes. */
    linked[1] = 1;
#endif
#if N > 3
    linked[2] = 1;
#endif
    run member();
    x = 1;
    do
    :: x < N -> run observer(x); x++
    :: else -> break
    od;
    x = 0;
    do
    :: x < EDGES -> run edge(x); x++
    :: else -> break
    od;
    x = 0;
    do
    :: x < EDGES / 2 -> run pair(x); x++
    :: else -> break
    od;
    x = 0;
#if APPLIES > 0
    do
    :: x < N -> run planner(x); x++
    :: else -> break
    od;
    x = 0
#endif
  }
}
