----------------------------- MODULE GateTrace -----------------------------
(* Whether what the simulator recorded of each destination is a behaviour of Gate: all of Traces can be gone through. *)
(* Who recorded it is not in them: replica 1 records all, 2 is any that has not read everything yet.                  *)
EXTENDS Gate, GateTraces, Sequences, TLC

VARIABLES trace, at

Start == Init /\ trace = 1 /\ at = 1

Does(e) ==
  CASE e[1] = "hold" -> Hold(e[2])
    [] e[1] = "word" -> Word(e[2], e[3])
    [] e[1] = "expire" -> Expire(e[2])
    [] e[1] = "record" -> Record(1, e[2], e[3])
    [] e[1] = "release" -> \E r \in Replicas : Release(r, e[2], e[3])
    [] e[1] = "give up" -> GiveUp(e[2])
    [] e[1] = "end" -> End(e[2])

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
     \/ Follow(2) /\ UNCHANGED <<trace, at>>
     \/ /\ at > Len(Events) /\ PrintT(<<"gone through", Traces[trace][1]>>)
        /\ Again /\ trace' = trace + 1 /\ at' = 1

Traced == Start /\ [][Go]_<<vars, trace, at>>

\* That this is broken is what is looked for.
Unfinished == trace <= Len(Traces)
=============================================================================
