/** Every signal of an event, sent or seen by the server: its value, what became of it, and its points. */

import { Badge, type Tone } from '../../../components/badge.tsx'
import { SignalName } from '../../../components/signal-name.tsx'
import { Empty, SkeletonRows } from '../../../components/states.tsx'
import { type Column, Table } from '../../../components/table.tsx'
import type { Explanation } from '../explanation.ts'

type Signal = Explanation['steps']['signals'][number]

const outcomes: Record<Signal['outcome'], { text: string; tone: Tone }> = {
  scored: { text: 'scored', tone: 'warn' },
  suppressed: { text: 'suppressed', tone: 'accent' },
  weightless: { text: 'no weight', tone: 'neutral' },
  unknown: { text: 'unknown', tone: 'neutral' },
  clean: { text: 'clean', tone: 'good' },
  not_measured: { text: 'not measured', tone: 'neutral' },
}
const order = Object.keys(outcomes)

const columns: Column<Signal>[] = [
  {
    id: 'signal',
    head: 'Signal',
    cell: ({ signal }) => <SignalName path={signal} />,
  },
  {
    id: 'value',
    head: 'Value',
    cell: ({ value }) => (
      <code className="font-mono text-sm" title={JSON.stringify(value)}>
        {JSON.stringify(value)}
      </code>
    ),
    width: '30%',
  },
  {
    id: 'outcome',
    head: 'Outcome',
    cell: ({ outcome, suppressed_because: why }) => (
      <span title={why}>
        <Badge tone={outcomes[outcome].tone}>{outcomes[outcome].text}</Badge>
      </span>
    ),
    width: '8rem',
  },
  { id: 'points', head: 'Points', numeric: true, cell: ({ points }) => points, width: '5rem' },
]

export function SignalTable({ signals }: { signals: readonly Signal[] | undefined }) {
  if (signals === undefined) return <SkeletonRows rows={4} />
  if (signals.length === 0) return <Empty title="The event has no signals" />
  const rows = [...signals].sort(
    (a, b) => b.points - a.points || order.indexOf(a.outcome) - order.indexOf(b.outcome),
  )
  return (
    <Table
      columns={columns}
      heightClass="max-h-96"
      label="Signals of the event"
      minWidth="32rem"
      rowKey={({ signal }) => signal}
      rows={rows}
    />
  )
}
