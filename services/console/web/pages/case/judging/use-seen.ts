/** A case as the person has seen it: what a judgement is of. */
import { useEffect, useRef } from 'react'
import type { Case } from '../case.ts'

/** An alert that has just appeared was not seen: a key that is pressed meanwhile is of before. */
const noticedMs = 700

/** Tells of a case at once when it is first shown, and a moment later when it has changed. */
export function useSeen(
  shown: Case | undefined,
  isWhole: boolean,
  onSeen: (shown: Case) => void,
): void {
  const latest = useRef(onSeen)
  const seen = useRef('')
  useEffect(() => {
    latest.current = onSeen
  })
  useEffect(() => {
    if (shown === undefined) return
    // What the queue knows may be old: the first answer about the case alone counts at once, too.
    const first = `${shown.case_id} ${isWhole}`
    if (seen.current !== first) {
      seen.current = first
      latest.current(shown)
      return
    }
    const timer = setTimeout(() => latest.current(shown), noticedMs)
    return () => clearTimeout(timer)
  }, [shown, isWhole])
}
