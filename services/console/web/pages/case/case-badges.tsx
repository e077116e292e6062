/** States of a case by word and colour. */
import { Badge, type Tone } from '../../components/badge.tsx'
import { toRelative } from '../../components/time/clock.ts'
import { useExact } from '../../components/time/time.tsx'
import type { Case } from './case.ts'
import { toDueState } from './case-words.ts'

const dueTones = { overdue: 'bad', urgent: 'warn', later: 'neutral' } as const

/** When a case is due, or since when it is overdue; nothing for one that is not open. */
export function DueBadge({ of, nowMs }: { of: Case; nowMs: number }) {
  const toText = useExact()
  if (of.state !== 'OPEN' || of.due_at === null) return null
  const state = toDueState(of.due_at, nowMs)
  const dueMs = Date.parse(of.due_at)
  const text =
    state === 'overdue'
      ? `Overdue ${toRelative(dueMs, nowMs).replace(/ ago|now/, '')}`.trim()
      : `Due ${toRelative(dueMs, nowMs)}`
  return (
    <span title={`Due ${toText(of.due_at)}`}>
      <Badge tone={dueTones[state]}>{text}</Badge>
    </span>
  )
}

/** Whether a case is open, snoozed or closed. */
export function CaseStateBadge({ of }: { of: Case }) {
  const toText = useExact()
  const { state, snoozed_until: until } = of
  const look: [text: string, tone: Tone] =
    state === 'CLOSED' ? ['Closed', 'neutral'] : until ? ['Snoozed', 'warn'] : ['Open', 'accent']
  const [text, tone] = look
  return (
    <span title={until === null ? undefined : `Until ${toText(until)}`}>
      <Badge tone={tone}>{text}</Badge>
    </span>
  )
}
