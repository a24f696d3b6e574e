/* Parcels of mass with tracker epochs, restarts and late messages.
 *
 * The protocol is that of daemon/core/mass/mass_ledger.h, runtime/parcels.h and
 * runtime/mass_exchange.h. README.md in this folder says what is shown, for
 * which bounds, and what is left out.
 *
 *   CONSERVED  In the newest epoch, z of its nodes, what is in flight between
 *              them and what is pending add up to 0, unless a node is about to
 *              notice that a partner has lost its memory.
 *   SETTLED    Where nothing more can happen, all nodes are in one epoch, each
 *              parcel was taken or is void, and the sum of z is 0.
 *
 * The k-th share that is given is 4^k, so no errors cancel each other.
 *
 * Bounds (-D)
 *   N           nodes, 2 or 3, in a line; with RING in a ring
 *   GIVES       shares that are given, in all
 *   CRASHES     crashes, in all
 *   ANEW        how often an algorithm begins anew, in all
 *   SLOTS       messages in flight on a directed edge, 1 or 2
 *   CHECKPOINT  checkpoints that are taken, in all
 *   PROGRESS    1: messages are lost LOSSES times and doubled DOUBLES times in
 *               all, so that only a node that is stuck goes on for ever. 0: as
 *               often as can be
 *   FAULT       a planted fault: README.md
 *   AGAIN       1: plans that change the model and change it back. 2: the same,
 *               and the epoch begins at 1 each time, which is wrong
 *   UNLINK      pairs of nodes that are neighbours no more, in all; with RING
 *   STEP        atomic, or d_step: faster, but what is never reached stays
 *               unknown
 */
#ifndef N
#define N 2
#endif
#ifndef GIVES
#define GIVES 3
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef ANEW
#define ANEW 1
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef CHECKPOINT
#define CHECKPOINT 0
#endif
#ifndef PROGRESS
#define PROGRESS 0
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef DOUBLES
#define DOUBLES 1
#endif
#ifndef FAULT
#define FAULT 0
#endif
#ifndef AGAIN
#define AGAIN 0
#endif
#ifndef UNLINK
#define UNLINK 0
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

/* What the giver of an edge knows of its taker. */
#define NONE 0 /* it has had no link with it in this life */
#define OLD 1  /* it had one with a life that has ended */
#define TOLD 2 /* it has a link, and is to compare ledgers (CHECKPOINT) */
#define UP 3   /* it has a link with its present life */
#define AWAY 4 /* it had one, and needs none any more (UNLINK) */

/* Nodes. */
bit alive[N];
byte epoch[N];
short z[N];

/* The giving end of an edge. The parcel that is out has the number last[e]. */
byte link[EDGES];
byte last[EDGES];
short out[EDGES];
short pend[EDGES];
bit partner[EDGES];

/* The taking end of an edge: the number of the newest parcel it took. */
byte took[EDGES];

/* The network: parcels from FROM(e) to TO(e), and the newest reply to them. A
 * reply with the number 0 is a refusal, which tells the taker's epoch. */
byte m_epoch[EDGES * SLOTS];
byte m_seq[EDGES * SLOTS];
short m_mass[EDGES * SLOTS];
byte r_epoch[EDGES];
byte r_seq[EDGES];

byte gives;
byte crashes;
#if ANEW > 0
byte anew;
#endif
#if PROGRESS
byte losses;
byte doubles;
#endif
#if AGAIN
/* The plan in force, 1 to 3. Plan 2 has another model than 1 and 3. */
byte plan[N];
#endif
#if UNLINK > 0
byte unlinked;
bit apart[N];
#endif

/* Of a step alone: 0 between steps. */
byte x;
byte y;

#if CHECKPOINT > 0
/* Sums of all that was put into parcels, and of all that was taken. */
short given[EDGES];
short taken[EDGES];
/* What each node has on disk; epoch 0: nothing. */
byte checkpoints;
byte c_epoch[N];
short c_z[N];
byte c_last[EDGES];
short c_out[EDGES];
short c_pend[EDGES];
bit c_partner[EDGES];
byte c_took[EDGES];
short c_given[EDGES];
short c_taken[EDGES];
#endif

/* Some node is a partner of n: mass went either way in this epoch. */
#ifdef RING
#define PARTNERS(n) (partner[2 * (n)] || partner[(2 * (n) + EDGES - 1) % EDGES])
#else
#define PARTNERS(n)                                \
  (((n) < N - 1 && partner[(2 * (n)) % EDGES]) ||  \
   ((n) > 0 && partner[(2 * (n) + EDGES - 1) % EDGES]))
#endif

#define SLOT(e, k) ((e) * SLOTS + (k))
/* Frames pass between the two ends, whose plans agree. */
#if AGAIN
#define LINKED(e)                                \
  (link[e] == UP && link[(e) ^ 1] == UP &&       \
   (plan[FROM(e)] == 2) == (plan[TO(e)] == 2))
#else
#define LINKED(e) (link[e] == UP && link[(e) ^ 1] == UP)
#endif
#if UNLINK > 0
#define NEIGHBOURS(e) !apart[(e) / 2]
#else
#define NEIGHBOURS(e) true
#endif
/* FROM(e) reads what comes from the life of TO(e) that it is linked with, also
 * when that has ended. */
#if AGAIN
#define READS(e) LINKED(e)
#else
#define READS(e) (link[e] == OLD || link[e] == UP)
#endif

/* ------------------------------------------------------------- steps ------ */

inline empty_giving(e) {
  last[e] = 0;
  out[e] = 0;
  pend[e] = 0;
  partner[e] = 0;
#if CHECKPOINT > 0
  given[e] = 0;
#endif
}

inline empty_taking(e) {
  took[e] = 0;
#if CHECKPOINT > 0
  taken[e] = 0;
#endif
}

/* Nothing was given or taken by node n in its present epoch. */
inline empty_ledger(n) {
  x = 0;
  do
  :: x < EDGES ->
     if
     :: FROM(x) == n -> empty_giving(x)
     :: TO(x) == n -> empty_taking(x)
     :: else
     fi;
     x++
  :: else -> break
  od;
  x = 0
}

/* Node n enters the epoch ep: MassExchange::Enter. */
inline enter(n, ep) {
  epoch[n] = ep;
#if FAULT != 3
  z[n] = 0;
#endif
  empty_ledger(n)
}

/* The last message in flight on e is gone. */
inline drop_last(e) {
  m_epoch[SLOT(e, SLOTS - 1)] = 0;
  m_seq[SLOT(e, SLOTS - 1)] = 0;
  m_mass[SLOT(e, SLOTS - 1)] = 0
}

/* The first one is gone. */
inline drop_first(e) {
#if SLOTS == 2
  m_epoch[SLOT(e, 0)] = m_epoch[SLOT(e, 1)];
  m_seq[SLOT(e, 0)] = m_seq[SLOT(e, 1)];
  m_mass[SLOT(e, 0)] = m_mass[SLOT(e, 1)];
#endif
  drop_last(e)
}

inline drop_all(e) {
  drop_first(e);
  drop_first(e)
}

inline drop_reply(e) {
  r_epoch[e] = 0;
  r_seq[e] = 0
}

/* The parcel that is out on e is in flight. */
#if SLOTS == 2
#define IN_FLIGHT(e)                                              \
  ((m_epoch[SLOT(e, 0)] == epoch[FROM(e)] &&                      \
    m_seq[SLOT(e, 0)] == last[e] && m_mass[SLOT(e, 0)] == out[e]) || \
   (m_epoch[SLOT(e, 1)] == epoch[FROM(e)] &&                      \
    m_seq[SLOT(e, 1)] == last[e] && m_mass[SLOT(e, 1)] == out[e]))
#else
#define IN_FLIGHT(e)                         \
  (m_epoch[SLOT(e, 0)] == epoch[FROM(e)] &&  \
   m_seq[SLOT(e, 0)] == last[e] && m_mass[SLOT(e, 0)] == out[e])
#endif

inline put_out(e, mass) {
  out[e] = mass;
  last[e]++;
  partner[e] = 1;
#if CHECKPOINT > 0
  given[e] = given[e] + (mass)
#endif
}

inline give(e) {
  /* 4^gives */
  z[FROM(e)] = z[FROM(e)] - (1 << (2 * gives));
  if
  :: out[e] == 0 && pend[e] == 0 -> put_out(e, 1 << (2 * gives))
  :: else ->
#if FAULT == 6
     if
     :: out[e] != 0 -> out[e] = out[e] + (1 << (2 * gives))
     :: else -> pend[e] = pend[e] + (1 << (2 * gives))
     fi
#else
     pend[e] = pend[e] + (1 << (2 * gives))
#endif
  fi;
  gives++
}

inline transmit(e) {
  x = SLOT(e, 0);
#if SLOTS == 2
  if
  :: m_epoch[x] != 0 -> x = SLOT(e, 1)
  :: else
  fi;
#endif
  m_epoch[x] = epoch[FROM(e)];
  m_seq[x] = last[e];
  m_mass[x] = out[e];
  x = 0
}

inline reply(e, ep, seq) {
  if
  :: LINKED(e) -> r_epoch[e] = ep; r_seq[e] = seq
  :: else
  fi
}

/* The message in slot k reaches the taker: MassExchange::Objection and OnMass,
 * MassLedger::Take. */
inline receive(e, k) {
  y = SLOT(e, k);
  if
  :: m_epoch[y] > epoch[TO(e)] -> enter(TO(e), m_epoch[y])
  :: else
  fi;
  if
#if FAULT == 2
  :: m_epoch[y] <= epoch[TO(e)] ->
#else
  :: m_epoch[y] == epoch[TO(e)] ->
#endif
     partner[e ^ 1] = 1;
     if
#if FAULT == 1
     :: true ->
#else
     :: m_seq[y] > took[e] ->
#endif
        took[e] = m_seq[y];
        z[TO(e)] = z[TO(e)] + m_mass[y];
#if CHECKPOINT > 0
        taken[e] = taken[e] + m_mass[y];
#endif
        reply(e, m_epoch[y], m_seq[y])
     :: else ->
#if FAULT == 7
        skip
#else
        reply(e, m_epoch[y], m_seq[y])
#endif
     fi
  :: else -> reply(e, epoch[TO(e)], 0)
  fi;
  y = 0
}

/* The giver hears the reply: Parcels::Transfer's `done`, and for a refusal the
 * State that comes with it. */
inline hear_reply(e) {
  if
  :: r_seq[e] == 0 && r_epoch[e] > epoch[FROM(e)] ->
     enter(FROM(e), r_epoch[e])
#if FAULT == 5
  :: r_seq[e] != 0 && out[e] != 0 && r_seq[e] == last[e] -> out[e] = 0
#else
  :: r_seq[e] != 0 && out[e] != 0 && r_seq[e] == last[e] &&
     r_epoch[e] == epoch[FROM(e)] -> out[e] = 0
#endif
  :: else
  fi;
  drop_reply(e)
}

#if CHECKPOINT > 0
/* The two ends of e agree, where the taker is in the giver's epoch. */
#if FAULT == 11
#define SUMS_AGREE(e, rest) true
#else
#define SUMS_AGREE(e, rest) (taken[e] + (rest) == given[e])
#endif
#define AGREE(e)                                        \
  ((took[e] == last[e] && SUMS_AGREE(e, 0)) ||          \
   (out[e] != 0 && took[e] + 1 == last[e] && SUMS_AGREE(e, out[e])))
/* The taker is in an older epoch than the giver. In this one it took nothing.
 */
#define NONE_TAKEN(e) (last[e] == 0 || (out[e] != 0 && last[e] == 1))

/* A new link, seen from FROM(e): the ledgers of both ends are compared. */
inline compare(e) {
  if
  :: epoch[TO(e)] > epoch[FROM(e)] -> enter(FROM(e), epoch[TO(e)])
  :: else
  fi;
  if
#if FAULT == 8
  :: true
#elif FAULT == 9
  :: epoch[TO(e)] < epoch[FROM(e)]
  :: epoch[TO(e)] == epoch[FROM(e)] && AGREE(e) && AGREE(e ^ 1)
#else
  :: epoch[TO(e)] == epoch[FROM(e)] && AGREE(e) && AGREE(e ^ 1)
  :: epoch[TO(e)] < epoch[FROM(e)] && NONE_TAKEN(e) && took[e ^ 1] == 0
#endif
  :: else -> enter(FROM(e), epoch[FROM(e)] + 1)
  fi;
  link[e] = UP
}
#endif

/* FROM(e) has a link with the present life of TO(e): Links::OnLinkUp,
 * MassExchange::OnRestarted. */
inline link_up(e) {
  if
  :: link[e] == OLD ->
#if FAULT != 10
     /* What came over the old link comes no more. */
     drop_all(e ^ 1);
     drop_reply(e);
#endif
#if CHECKPOINT == 0 && FAULT != 4
     if
     :: partner[e] -> enter(FROM(e), epoch[FROM(e)] + 1)
     :: else
     fi
#endif
  :: else
  fi;
#if CHECKPOINT > 0
  link[e] = TOLD
#else
  link[e] = UP
#endif
}

#if UNLINK > 0
/* FROM(e) does not know whether TO(e) holds what it held, and has no link. */
#define DOUBTS(e) (partner[e] && link[e] < TOLD)

/* The link of a pair is closed in order. */
inline unlink(e) {
  link[e] = AWAY;
  link[e ^ 1] = AWAY;
  drop_all(e);
  drop_all(e ^ 1);
  drop_reply(e);
  drop_reply(e ^ 1)
}
#endif

/* Node n is gone, with all that is on its way to it. */
inline crash(n) {
  alive[n] = 0;
  epoch[n] = 0;
  z[n] = 0;
  empty_ledger(n);
  do
  :: y < EDGES ->
     if
     :: FROM(y) == n ->
        link[y] = NONE;
        drop_reply(y)
     :: TO(y) == n ->
        drop_all(y);
        if
        :: link[y] != NONE -> link[y] = OLD
        :: else
        fi
     :: else
     fi;
     y++
  :: else -> break
  od;
  y = 0
}

#if CHECKPOINT > 0
inline save(n) {
  c_epoch[n] = epoch[n];
  c_z[n] = z[n];
  x = 0;
  do
  :: x < EDGES ->
     if
     :: FROM(x) == n ->
        c_last[x] = last[x];
        c_out[x] = out[x];
        c_pend[x] = pend[x];
        c_partner[x] = partner[x];
        c_given[x] = given[x]
     :: TO(x) == n ->
        c_took[x] = took[x];
        c_taken[x] = taken[x]
     :: else
     fi;
     x++
  :: else -> break
  od;
  x = 0
}

inline restore(n) {
  epoch[n] = c_epoch[n];
  z[n] = c_z[n];
  x = 0;
  do
  :: x < EDGES ->
     if
     :: FROM(x) == n ->
        last[x] = c_last[x];
        out[x] = c_out[x];
        pend[x] = c_pend[x];
        partner[x] = c_partner[x];
        given[x] = c_given[x]
     :: TO(x) == n ->
        took[x] = c_took[x];
        taken[x] = c_taken[x]
     :: else
     fi;
     x++
  :: else -> break
  od;
  x = 0
}
#endif

/* --------------------------------------------------------- processes ------ */

proctype node(byte n) {
end:
  do
  :: STEP { !alive[n] -> alive[n] = 1; epoch[n] = 1 }
#if CHECKPOINT > 0
  :: STEP { !alive[n] && c_epoch[n] != 0 -> alive[n] = 1; restore(n) }
  :: STEP {
       alive[n] && checkpoints < CHECKPOINT ->
       checkpoints++;
       save(n)
     }
#endif
  :: STEP { alive[n] && crashes < CRASHES -> crashes++; crash(n) }
#if AGAIN
  /* Another plan: PlanAdoption::Adopt. Where the model is another than before,
   * the run begins again; a node that missed plan 2 notices nothing. */
#if AGAIN == 2
  :: STEP { alive[n] && plan[n] < 3 -> plan[n]++; enter(n, 1) }
#else
  :: STEP { alive[n] && plan[n] < 3 -> plan[n]++; enter(n, epoch[n] + 1) }
#endif
  :: STEP { alive[n] && plan[n] == 1 -> plan[n] = 3 }
#endif
#if ANEW > 0
  /* Its algorithm begins anew: MassExchange::BeginAlgorithm. */
  :: STEP {
       alive[n] && anew < ANEW && PARTNERS(n) ->
       anew++;
       enter(n, epoch[n] + 1)
     }
#endif
  od
}

proctype edge(byte e) {
end:
  do
  :: STEP {
       link[e] < TOLD && alive[FROM(e)] && alive[TO(e)] && NEIGHBOURS(e) ->
       link_up(e)
     }
#if CHECKPOINT > 0
  :: STEP { link[e] == TOLD && link[e ^ 1] >= TOLD -> compare(e) }
#endif
  /* FROM(e) hears a State of TO(e): MassExchange::Follow. */
  :: STEP {
       LINKED(e) && epoch[TO(e)] > epoch[FROM(e)] ->
       enter(FROM(e), epoch[TO(e)])
     }
#if UNLINK > 0
  /* Another graph: the two need no link any more. A ring is the same from each
   * of its nodes, so the first pair stands for all. */
  :: STEP {
       unlinked < UNLINK && (unlinked > 0 || e == 0) && !apart[e / 2] && link[e] == UP &&
       link[e ^ 1] == UP ->
       unlinked++;
       apart[e / 2] = 1;
       unlink(e)
     }
#endif
#if UNLINK > 0 && FAULT != 12
  /* FROM(e) hears from others that TO(e) has started again, or has started
   * again itself: MassExchange::OnMember. The two meet, or they cannot: Doubts.
   */
  :: STEP {
       apart[e / 2] && DOUBTS(e) && alive[TO(e)] -> link_up(e); link_up(e ^ 1)
     }
  :: STEP {
       apart[e / 2] && DOUBTS(e) && alive[TO(e)] ->
       enter(FROM(e), epoch[FROM(e)] + 1)
     }
  /* Their link is needed no more: StandingLinks::CloseUnwanted. */
  :: STEP {
       apart[e / 2] && link[e] == UP && link[e ^ 1] == UP -> unlink(e)
     }
#endif
  /* The giver: MassLedger::Give and Send, Parcels::Transfer. */
  :: STEP { link[e] != NONE && NEIGHBOURS(e) && gives < GIVES -> give(e) }
  :: STEP {
       out[e] == 0 && pend[e] != 0 -> put_out(e, pend[e]);
       pend[e] = 0
     }
#if PROGRESS
  /* A try ends with a reply, or with its loss. */
  :: STEP {
       LINKED(e) && out[e] != 0 && !IN_FLIGHT(e) && r_epoch[e] == 0 &&
       m_epoch[SLOT(e, SLOTS - 1)] == 0 -> transmit(e)
     }
  :: STEP {
       m_epoch[SLOT(e, 0)] != 0 && READS(e ^ 1) ->
       receive(e, 0);
       drop_first(e)
     }
  :: STEP {
       m_epoch[SLOT(e, 0)] != 0 && READS(e ^ 1) && doubles < DOUBLES ->
       doubles++;
       receive(e, 0)
     }
  :: STEP {
       m_epoch[SLOT(e, 0)] != 0 && losses < LOSSES -> losses++; drop_first(e)
     }
  :: STEP { r_epoch[e] != 0 && READS(e) -> hear_reply(e) }
  :: STEP {
       r_epoch[e] != 0 && losses < LOSSES -> losses++; drop_reply(e)
     }
#else
  /* A message stays in flight, to come again, until it is lost. */
  :: STEP {
       LINKED(e) && out[e] != 0 && !IN_FLIGHT(e) &&
       m_epoch[SLOT(e, SLOTS - 1)] == 0 -> transmit(e)
     }
  :: STEP { m_epoch[SLOT(e, 0)] != 0 && READS(e ^ 1) -> receive(e, 0) }
  :: STEP { m_epoch[SLOT(e, 0)] != 0 -> drop_first(e) }
#if SLOTS == 2
  :: STEP { m_epoch[SLOT(e, 1)] != 0 && READS(e ^ 1) -> receive(e, 1) }
  :: STEP { m_epoch[SLOT(e, 1)] != 0 -> drop_last(e) }
#endif
  :: STEP { r_epoch[e] != 0 && READS(e) -> hear_reply(e) }
  :: STEP { r_epoch[e] != 0 -> drop_reply(e) }
#endif
  od
}

/* ------------------------------------------------------- properties ------- */

#define MAX(a, b) ((a) > (b) -> (a) : (b))
#if N == 2
#define NEWEST MAX(epoch[0], epoch[1])
#else
#define NEWEST MAX(MAX(epoch[0], epoch[1]), epoch[2])
#endif
#define IS_NEW(n) (alive[n] && epoch[n] == NEWEST)
/* FROM(e) knows of the life of TO(e) with which it has exchanged mass. */
#define KNOWN(e) \
  (!IS_NEW(FROM(e)) || !partner[e] || link[e] == UP || link[e] == AWAY)
/* What was given on e and is not taken. */
#define UNTAKEN(e)                                                  \
  (IS_NEW(FROM(e)) -> pend[e] + (IS_NEW(TO(e)) && took[e] >= last[e] \
                                     -> 0                           \
                                     : out[e])                      \
                   : 0)
#define HELD(n) (IS_NEW(n) -> z[n] : 0)
#if UNLINK > 0
#define QUIET(e) \
  (apart[(e) / 2] || (link[e] == UP && out[e] == 0 && pend[e] == 0))
#else
#define QUIET(e) (link[e] == UP && out[e] == 0 && pend[e] == 0)
#endif

#if N == 2
#define OF_EDGES(what, op) (what(0) op what(1))
#define OF_NODES(what, op) (what(0) op what(1))
#elif defined(RING)
#define OF_EDGES(what, op)                                        \
  (what(0) op what(1) op what(2) op what(3) op what(4) op what(5))
#define OF_NODES(what, op) (what(0) op what(1) op what(2))
#else
#define OF_EDGES(what, op) (what(0) op what(1) op what(2) op what(3))
#define OF_NODES(what, op) (what(0) op what(1) op what(2))
#endif
#define ALL_KNOWN OF_EDGES(KNOWN, &&)
#define TOTAL (OF_NODES(HELD, +) + OF_EDGES(UNTAKEN, +))
#if AGAIN
#define CONSERVED (plan[0] != 3 || plan[1] != 3 || !ALL_KNOWN || TOTAL == 0)
#else
#define CONSERVED (!ALL_KNOWN || TOTAL == 0)
#endif
#define SETTLED (OF_EDGES(QUIET, &&) && OF_NODES(IS_NEW, &&) && TOTAL == 0)

proctype monitor() {
end:
  !CONSERVED -> assert(false) /* unreached: that is the claim */
}

/* Runs when nothing else can. */
active proctype last_word() {
end:
  timeout;
  assert(SETTLED);
  if
  :: NEWEST > 1 && took[0] > 0 -> printf("mass has moved after an epoch\n")
  :: else
  fi
}

init {
  atomic {
#if AGAIN
    plan[0] = 1;
    plan[1] = 1;
#endif
    run node(0);
    run node(1);
    run edge(0);
    run edge(1);
#if N == 3
    run node(2);
    run edge(2);
    run edge(3);
#ifdef RING
    run edge(4);
    run edge(5);
#endif
#endif
    /* What started last is searched first. */
    run monitor()
  }
}
