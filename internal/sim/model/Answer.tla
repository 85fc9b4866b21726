------------------------------- MODULE Answer -------------------------------
(* The way of a job that asks what follows a failed submission: it is given out, analysed in one transaction of the   *)
(* journal, answered, and given out again for as long as the engine did not hear. Any number of replicas do so at     *)
(* once; a replica that ends just does no more. docs/architecture.md, "The rules", R20.                               *)
EXTENDS Naturals, FiniteSets, Sequences

CONSTANTS Jobs, Most  \* records of a job at most, to keep the world small

VARIABLES
  records,   \* what the journal has of a job, in order
  given,     \* what a job's variables were when it was given out: 0, or the number of the record that wrote them
  variables, \* what they are now
  recalled,  \* records, by their numbers, that a transaction returned, so that a replica may answer with them
  told,      \* records that the engine was told; the network may bring each of them at any time
  engine     \* the record whose answer ended the job; 0 while the engine offers it

vars == <<records, given, variables, recalled, told, engine>>

\* A record: of which variables, an attempt's number, given up, its time has passed, the engine's word is noted, a
\* person decided on its dead letter. The last two fields are for checking: why it is not the record before again.
New(j, of, number, final, why) ==
  [of |-> of, attempt |-> number, final |-> final, passed |-> FALSE, marked |-> FALSE, decided |-> FALSE, why |-> why]

Last(j) == Len(records[j])
Max(S) == CHOOSE n \in S : \A m \in S : m <= n

Init ==
  /\ records = [j \in Jobs |-> <<>>]
  /\ given = [j \in Jobs |-> {}]
  /\ variables = [j \in Jobs |-> 0]
  /\ recalled = [j \in Jobs |-> {}]
  /\ told = [j \in Jobs |-> {}]
  /\ engine = [j \in Jobs |-> 0]

\* The engine gives a job out, the first time, after its time-out, or to two at once.
Give(j) ==
  /\ engine[j] = 0
  /\ given' = [given EXCEPT ![j] = @ \cup {variables[j]}]
  /\ UNCHANGED <<records, variables, recalled, told, engine>>

\* The record that an analysis with these variables is the same as; 0 for none. Its own, or the last one where these
\* are what its answer wrote before it threw the error.
Same(j, v) ==
  LET own == {n \in 1..Last(j) : records[j][n].of = v} IN
  IF own # {} THEN Max(own) ELSE IF v # 0 /\ v = Last(j) /\ records[j][v].final THEN v ELSE 0

\* Whether its decision stands: nobody is known to have taken it, or it is a dead letter that nobody dealt with.
Stands(j, v, n) ==
  LET r == records[j][n]
      open == r.final /\ ~r.decided
      marked == \E m \in 1..Last(j) : records[j][m].attempt = r.attempt /\ records[j][m].marked
  IN IF r.of = v THEN ~marked \/ open ELSE open

Recall(j, v) ==
  LET n == Same(j, v) IN
  /\ v \in given[j] /\ n # 0
  /\ Stands(j, v, n) /\ (records[j][n].final \/ ~records[j][n].passed)
  /\ recalled' = [recalled EXCEPT ![j] = @ \cup {n}]
  /\ UNCHANGED <<records, given, variables, told, engine>>

Record(j, r) ==
  /\ Last(j) < Most
  /\ records' = [records EXCEPT ![j] = Append(@, r)]
  /\ recalled' = [recalled EXCEPT ![j] = @ \cup {Last(j) + 1}]
  /\ UNCHANGED <<given, variables, told, engine>>

\* The retry's time has passed: the same with a later time, or the end where that is too late (R20).
Rebase(j, v, final) ==
  LET n == Same(j, v) IN
  /\ v \in given[j] /\ n # 0
  /\ Stands(j, v, n) /\ ~records[j][n].final /\ records[j][n].passed
  /\ Record(j, New(j, records[j][n].of, records[j][n].attempt, final, "rebased"))

\* A decision of its own.
Decide(j, v, final) ==
  LET n == Same(j, v)
      number == 1 + Cardinality({records[j][m].attempt : m \in 1..Last(j)})
      why == IF Last(j) = 0 THEN "first"
             ELSE IF engine[j] # 0 THEN "taken"
             ELSE IF \E m \in 1..Last(j) : records[j][m].decided THEN "decided"
             ELSE "none"
  IN
  /\ v \in given[j]
  /\ n # 0 => ~Stands(j, v, n)
  /\ Record(j, New(j, v, number, final, why))

\* A replica tells the engine. What gives up sets the variables first.
Write(j, n) ==
  /\ engine[j] = 0 /\ n \in recalled[j] /\ records[j][n].final
  /\ variables' = [variables EXCEPT ![j] = n]
  /\ UNCHANGED <<records, given, recalled, told, engine>>

Tell(j, n) ==
  /\ n \in recalled[j]
  /\ told' = [told EXCEPT ![j] = @ \cup {n}]
  /\ UNCHANGED <<records, given, variables, recalled, engine>>

\* The engine takes what it was told; the first ends the job.
Take(j, n) ==
  /\ n \in told[j] /\ engine[j] = 0
  /\ engine' = [engine EXCEPT ![j] = n]
  /\ UNCHANGED <<records, given, variables, recalled, told>>

Set(j, n, field, value) ==
  /\ records' = [records EXCEPT ![j][n][field] = value]
  /\ UNCHANGED <<given, variables, recalled, told, engine>>

\* The replica heard that the engine took it, and noted that.
Mark(j, n) == engine[j] = n /\ n # 0 /\ ~records[j][n].marked /\ Set(j, n, "marked", TRUE)

Pass(j, n) == n \in 1..Last(j) /\ ~records[j][n].final /\ ~records[j][n].passed /\ Set(j, n, "passed", TRUE)

\* A person decides on the dead letter, before or after its process was told of it; what finds nobody is open again.
Review(j, n) == n \in 1..Last(j) /\ records[j][n].final /\ ~records[j][n].decided /\ Set(j, n, "decided", TRUE)
Reopen(j, n) == n \in 1..Last(j) /\ records[j][n].decided /\ Set(j, n, "decided", FALSE)

Next == \E j \in Jobs :
  \/ Give(j)
  \/ \E v \in given[j] : Recall(j, v) \/ \E final \in BOOLEAN : Rebase(j, v, final) \/ Decide(j, v, final)
  \/ \E n \in 1..Most : Write(j, n) \/ Tell(j, n) \/ Take(j, n) \/ Mark(j, n) \/ Pass(j, n) \/ Review(j, n) \/ Reopen(j, n)

Spec == Init /\ [][Next]_vars

\* What the engine is told was recorded before.
Recorded == \A j \in Jobs : told[j] \subseteq 1..Last(j) /\ engine[j] \in 0..Last(j)

\* A job that the engine offers is decided once: what is recorded after is the same at a later time (R20), or follows
\* a person's decision. Where the engine took an answer, it may be a wiped broker's key.
Once == \A j \in Jobs : \A n \in 2..Last(j) : records[j][n].why \in {"rebased", "decided", "taken"}

\* Only what has passed is given a later time, and what gives up once stays.
Kept == \A j \in Jobs : \A n, m \in 1..Last(j) :
  n < m /\ records[j][m].why = "rebased" /\ records[j][n].attempt = records[j][m].attempt => ~records[j][n].final /\ records[j][n].passed
=============================================================================
