---------------------------- MODULE AnswerTrace ----------------------------
(* Whether what the simulator did with each job is a behaviour of Answer: all of Traces can be gone through. Only when *)
(* a replica recalled a record, and noted that the engine took it, is not in them.                                    *)
EXTENDS Answer, AnswerTraces, TLC

VARIABLES trace, at

Start == Init /\ trace = 1 /\ at = 1

Does(e) ==
  CASE e[1] = "give" -> Give(1)
    [] e[1] = "record" -> \E v \in given[1] : IF e[2] THEN Rebase(1, v, e[3]) ELSE Decide(1, v, e[3])
    [] e[1] = "pass" -> Pass(1, e[2])
    [] e[1] = "write" -> Write(1, e[2])
    [] e[1] = "tell" -> Tell(1, e[2])
    [] e[1] = "take" -> Take(1, e[2])
    [] e[1] = "review" -> Review(1, e[2])
    [] e[1] = "reopen" -> Reopen(1, e[2])

Unseen == \/ \E v \in given[1] : Recall(1, v)
          \/ \E n \in 1..Last(1) : Mark(1, n)

Again ==
  /\ records' = [j \in Jobs |-> <<>>]
  /\ given' = [j \in Jobs |-> {}]
  /\ variables' = [j \in Jobs |-> 0]
  /\ recalled' = [j \in Jobs |-> {}]
  /\ told' = [j \in Jobs |-> {}]
  /\ engine' = [j \in Jobs |-> 0]

Events == Traces[trace][2]

Go ==
  /\ trace <= Len(Traces)
  /\ \/ at <= Len(Events) /\ Does(Events[at]) /\ at' = at + 1 /\ UNCHANGED trace
     \/ Unseen /\ UNCHANGED <<trace, at>>
     \/ /\ at > Len(Events) /\ PrintT(<<"gone through", Traces[trace][1]>>)
        /\ Again /\ trace' = trace + 1 /\ at' = 1

Traced == Start /\ [][Go]_<<vars, trace, at>>

\* That this is broken is what is looked for.
Unfinished == trace <= Len(Traces)
=============================================================================
