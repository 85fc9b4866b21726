----------------------------- MODULE GateTrace -----------------------------
(* Whether what the simulator recorded of each destination is a behaviour of Gate: all of Traces can be gone through. *)
(* Only who recorded it, and when each replica read it, is not in them.                                               *)
EXTENDS Gate, GateTraces, Naturals, Sequences

VARIABLES trace, at

Start == Init /\ trace = 1 /\ at = 1

Does(e) ==
  CASE e[1] = "hold" -> Hold(e[2])
    [] e[1] = "word" -> Word(e[2], e[3])
    [] e[1] = "expire" -> Expire(e[2])
    [] e[1] = "record" -> \E r \in Replicas : Record(r, e[2], e[3])
    [] e[1] = "release" -> \E r \in Replicas : Release(r, e[2], e[3])
    [] e[1] = "give up" -> GiveUp(e[2])

Again ==
  /\ state' = [version |-> 0, phase |-> "up", canary |-> None]
  /\ views' = [r \in Replicas |-> state']
  /\ claims' = [c \in Claims |-> "new"]
  /\ canaries' = {}
  /\ word' = [c \in Claims |-> "none"]
  /\ expired' = {}
  /\ lost' = {}

Events == Traces[trace][2]

Go ==
  /\ trace <= Len(Traces)
  /\ \/ at <= Len(Events) /\ Does(Events[at]) /\ at' = at + 1 /\ UNCHANGED trace
     \/ (\E r \in Replicas : Follow(r)) /\ UNCHANGED <<trace, at>>
     \/ /\ at > Len(Events) /\ PrintT(<<"gone through", Traces[trace][1]>>)
        /\ Again /\ trace' = trace + 1 /\ at' = 1

Traced == Start /\ [][Go]_<<vars, trace, at>>

\* That this is broken is what is looked for.
Unfinished == trace <= Len(Traces)
=============================================================================
