/** What the present policies would say of the event that raised an alert. */
import { ActionBadge } from '../../components/badge.tsx'
import { Panel } from '../../components/page.tsx'
import type { AlertRecord } from './alert.ts'

type Verdict = NonNullable<AlertRecord['now']['active']>

export function Now({ record: { alert, now, policy_version: version } }: { record: AlertRecord }) {
  const { action, risk_score: score } = alert.decision
  return (
    <Panel title="Decision then and now">
      <ul className="@container">
        <Line action={action} flags={alert.flags} name={`Then, version ${version}`} score={score} />
        <VerdictLine before={score} name="Active policy" verdict={now.active} />
        <VerdictLine before={score} name="Shadow policy" verdict={now.shadow} />
      </ul>
    </Panel>
  )
}

function VerdictLine({
  name,
  verdict,
  before,
}: {
  name: string
  verdict: Verdict | null
  before: number
}) {
  if (verdict === null) {
    return <li className="border-line border-t px-4 py-2 text-muted">{name}: none</li>
  }
  const { version, action, risk_score: score, reasons, risk_features: features } = verdict
  return (
    <Line
      action={action}
      flags={reasons.map(({ code }) => code)}
      moved={score - before}
      name={`${name}, version ${version}`}
      note={features ? undefined : 'without the history of the device, which is no longer kept'}
      score={score}
    />
  )
}

function Line({
  name,
  action,
  score,
  moved = 0,
  flags,
  note,
}: {
  name: string
  action: string
  score: number
  /** The difference from the score of that time. */
  moved?: number
  flags: readonly string[]
  note?: string | undefined
}) {
  return (
    <li className="grid gap-x-4 gap-y-1 border-line border-t px-4 py-2 first:border-t-0 @xl:grid-cols-[13rem_9rem_minmax(0,1fr)]">
      <span>{name}</span>
      <span className="flex items-center gap-2 self-start">
        <ActionBadge action={action} />
        <span>{score}</span>
        {moved !== 0 && (
          <span className="text-muted">{moved > 0 ? `+${moved}` : `−${Math.abs(moved)}`}</span>
        )}
      </span>
      <span className="min-w-0 text-sm break-words">
        {flags.join(', ') || 'no reason'}
        {note && <span className="block text-muted">{note}</span>}
      </span>
    </li>
  )
}
