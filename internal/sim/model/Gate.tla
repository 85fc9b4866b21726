-------------------------------- MODULE Gate --------------------------------
(* The gate of one destination: claims are held while it is down, one is sent ahead to test it (the canary), and the  *)
(* others follow. Several replicas may believe that they lead; the journal takes a state that follows the last one    *)
(* only, and a departure of what is held only. docs/architecture.md, "Claims wait at a gate", R27, R28.               *)
EXTENDS Naturals, FiniteSets

CONSTANTS Replicas, Claims, None, Most  \* states recorded at most, to keep the world small

VARIABLES
  state,   \* of the destination, as it was recorded last: its version, its phase, its canary
  views,   \* what each replica takes it for
  claims,  \* where each claim is: "new", "passed" at once, "held", held "again" though it passed, "gone" to the portal
           \* from where it was held, or "given up"
  canaries,\* claims that were let go as canaries
  word,    \* of each claim: "none", "answered", "failed"
  expired, \* canaries that were waited for long enough
  lost     \* claims of which the engine said that nobody waits for them

vars == <<state, views, claims, canaries, word, expired, lost>>

Phases == {"up", "down", "testing", "ramping"}

Init ==
  /\ state = [version |-> 0, phase |-> "up", canary |-> None]
  /\ views = [r \in Replicas |-> state]
  /\ claims = [c \in Claims |-> "new"]
  /\ canaries = {}
  /\ word = [c \in Claims |-> "none"]
  /\ expired = {}
  /\ lost = {}

\* A claim comes. One may go at once where the replica that has it takes the destination for up.
Pass(r, c) ==
  /\ claims[c] = "new" /\ views[r].phase = "up"
  /\ claims' = [claims EXCEPT ![c] = "passed"]
  /\ UNCHANGED <<state, views, canaries, word, expired, lost>>

\* The engine may give a job to two, of whom one has it held when the other has let it pass, which is no record. What
\* departed is not held again.
Hold(c) ==
  /\ claims[c] \in {"new", "passed"}
  /\ claims' = [claims EXCEPT ![c] = IF @ = "new" THEN "held" ELSE "again"]
  /\ UNCHANGED <<state, views, canaries, word, expired, lost>>

\* The portal's word on what went is recorded.
Word(c, w) ==
  /\ claims[c] \in {"passed", "again", "gone"} /\ word[c] = "none"
  /\ word' = [word EXCEPT ![c] = w]
  /\ UNCHANGED <<state, views, claims, canaries, expired, lost>>

\* A canary without word is waited for no more. It was recorded, and may be held still.
Expire(c) ==
  /\ c \in {state.canary} \cup canaries /\ c # None /\ c \notin expired
  /\ expired' = expired \cup {c}
  /\ UNCHANGED <<state, views, claims, canaries, word, lost>>

\* A replica reads what was recorded.
Follow(r) ==
  /\ views' = [views EXCEPT ![r] = state]
  /\ UNCHANGED <<state, claims, canaries, word, expired, lost>>

\* What happened since has the canary of a view taken back: nobody waits for it.
Waited(v) == v.canary # None /\ word[v.canary] = "none" /\ v.canary \notin expired \cup lost

\* A replica records a state, for whatever reason; one that does not follow the last one is refused. A canary that was
\* not let go in time, or that the engine took late, may be the next one, too: its time begins anew.
Record(r, phase, canary) ==
  /\ views[r].version = state.version /\ state.version < Most
  /\ \/ canary = views[r].canary /\ UNCHANGED expired
     \/ canary = None /\ ~Waited(views[r]) /\ UNCHANGED expired
     \/ /\ canary # None /\ ~Waited(views[r]) /\ phase = "testing"
        /\ (claims[canary] \in {"held", "again"} \/ (canary \in canaries /\ word[canary] = "none"))
        /\ expired' = expired \ {canary}
  /\ phase = "testing" => canary # None
  /\ state' = [version |-> state.version + 1, phase |-> phase, canary |-> canary]
  /\ views' = [views EXCEPT ![r] = state']
  /\ UNCHANGED <<claims, canaries, word, lost>>

\* A replica that believes it leads lets a claim go that is held: the canary of its view while that is waited for, or any
\* while it takes the destination for up or ramping. The engine knows nothing of one that passed before.
Release(r, c, kind) ==
  /\ claims[c] \in {"held", "again"}
  /\ IF kind = "canary" THEN views[r].phase = "testing" /\ views[r].canary = c /\ c \notin expired
     ELSE views[r].phase \in {"up", "ramping"}
  /\ claims' = [claims EXCEPT ![c] = "gone"]
  /\ canaries' = IF kind = "canary" /\ claims[c] = "held" THEN canaries \cup {c} ELSE canaries
  /\ lost' = IF claims[c] = "again" THEN lost \cup {c} ELSE lost
  /\ UNCHANGED <<state, views, word, expired>>

\* A claim that cannot be sent in time is given to a person.
GiveUp(c) ==
  /\ claims[c] \in {"held", "again"}
  /\ claims' = [claims EXCEPT ![c] = "given up"]
  /\ UNCHANGED <<state, views, canaries, word, expired, lost>>

\* A claim's process ends, by an operator. The engine says so once the claim is let go.
End(c) ==
  /\ claims[c] \in {"held", "again"} /\ c \notin lost
  /\ lost' = lost \cup {c}
  /\ UNCHANGED <<state, views, claims, canaries, word, expired>>

Next ==
  \/ \E c \in Claims : Hold(c) \/ GiveUp(c) \/ Expire(c) \/ End(c) \/ \E w \in {"answered", "failed"} : Word(c, w)
  \/ \E r \in Replicas :
     \/ Follow(r)
     \/ \E c \in Claims : Pass(r, c) \/ \E kind \in {"canary", "other"} : Release(r, c, kind)
     \/ \E phase \in Phases : \E canary \in Claims \cup {None} : Record(r, phase, canary)

Spec == Init /\ [][Next]_vars

\* At most one canary is at the portal that is waited for.
OneCanary == Cardinality({c \in canaries : word[c] = "none" /\ c \notin expired \cup lost}) <= 1

\* A canary that is waited for is the recorded one.
Known == \A c \in canaries : word[c] = "none" /\ c \notin expired \cup lost => c = state.canary
=============================================================================
