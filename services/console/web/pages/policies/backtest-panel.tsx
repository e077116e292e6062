/** The backtest of a draft: start, progress that can be left, and what the policy would have done. */
import { useState } from 'react'
import { Button } from '../../components/button.tsx'
import { controlClasses } from '../../components/field.tsx'
import { Panel } from '../../components/page.tsx'
import { Empty, Refused } from '../../components/states.tsx'
import { serverNowMs } from '../../components/time/server-clock.ts'
import { cancelBacktest, type Report, startBacktest, useBacktest } from './backtest-run.ts'
import { KnownOutcomes } from './known-outcomes.tsx'
import { ChangeTiles, ConfusionMatrix, MovedMost, NamedChanges, Tile } from './outcome.tsx'
import { Progress } from './progress.tsx'

const dayMs = 86_400_000
const toCount = (value: number) => value.toLocaleString('en')

export function BacktestPanel({
  tenant,
  text,
  valid,
}: {
  tenant: string
  text: string
  /** The server has found the document valid. */
  valid: boolean
}) {
  const backtest = useBacktest(tenant)
  const [days, setDays] = useState('30')
  const start = () => {
    const since = days === '' ? null : new Date(serverNowMs() - Number(days) * dayMs).toISOString()
    void startBacktest(tenant, { text, since })
  }
  const running = backtest?.running === true
  const outdated = backtest?.report != null && backtest.request.text !== text
  return (
    <Panel
      action={
        <div className="flex flex-wrap items-end gap-2">
          <select
            aria-label="Events of the backtest"
            className={`${controlClasses} h-8 w-auto!`}
            onChange={({ target }) => setDays(target.value)}
            value={days}
          >
            <option value="1">Last day</option>
            <option value="7">Last 7 days</option>
            <option value="30">Last 30 days</option>
            <option value="">All stored events</option>
          </select>
          {running ? (
            <Button onClick={() => cancelBacktest(tenant)}>Cancel</Button>
          ) : (
            <Button disabled={!valid} look={backtest?.report ? 'plain' : 'primary'} onClick={start}>
              {backtest?.report ? 'Run again' : 'Run the backtest'}
            </Button>
          )}
        </div>
      }
      title="Backtest"
    >
      {running && <Running tenant={tenant} />}
      {!running && backtest?.error != null && (
        <div className="p-4">
          <Refused error={backtest.error} />
        </div>
      )}
      {outdated && (
        <p className="border-line border-b bg-warn-soft px-4 py-2 text-warn" role="status">
          The draft has changed since this backtest. Run it again before you publish.
        </p>
      )}
      {backtest?.report && <ReportView report={backtest.report} />}
      {backtest === null && (
        <Empty title="Not run yet">
          See what this policy would have done with the stored events before anyone is affected.
        </Empty>
      )}
    </Panel>
  )
}

function Running({ tenant }: { tenant: string }) {
  const progress = useBacktest(tenant)?.progress ?? null
  const { slices_done: done = 0, slices = 0, events_done = 0, events = 0 } = progress ?? {}
  const text =
    progress === null
      ? 'Planning the backtest.'
      : `${toCount(events_done)} of about ${toCount(events)} events.`
  return <Progress noun="backtest" share={slices === 0 ? 0 : done / slices} text={text} />
}

function ReportView({ report }: { report: Report }) {
  const { alerts } = report
  const moved = report.moved_most.map(({ old_score, new_score, ...one }) => ({
    ...one,
    before: old_score,
    after: new_score,
  }))
  if (report.events === 0) {
    return (
      <Empty title="There are no stored events in this time">
        Choose a longer time, or send telemetry first.
      </Empty>
    )
  }
  return (
    <div className="grid gap-5 p-4">
      <div className="flex flex-wrap gap-2">
        <Tile name="Events" value={toCount(report.events)} />
        <Tile name="Alerts before" value={toCount(alerts.before)} />
        <Tile name="Alerts after" value={toCount(alerts.after)} />
      </div>
      <div className="grid gap-2">
        <h3 className="font-medium">Sessions with an alert under either policy</h3>
        <div className="flex flex-wrap gap-2">
          <ChangeTiles changes={report.changes} />
        </div>
        <p className="text-muted text-sm">
          These are alerts that the signals alone raise. Of the sessions gone,{' '}
          {toCount(report.correlated.may_stay)} may keep theirs because of what is known of the
          device or user. Of the new ones, {toCount(report.correlated.exist_already)} have one
          already for that reason. The thresholds above count with it, so they may differ by a few.
        </p>
      </div>
      <ConfusionMatrix after="this draft" before="as decided" matrix={report.matrix} />
      <Judged rows={report.by_disposition} />
      <KnownOutcomes
        after={report.outcomes.after}
        asOf={report.outcomes.as_of}
        before={report.outcomes.before}
        heads={['As decided', 'This draft']}
        moves={report.outcomes}
      />
      <div className="grid gap-4 empty:hidden lg:grid-cols-2">
        <NamedChanges rows={report.by_flag} title="Flag" />
        <NamedChanges rows={report.by_sdk_version} title="SDK version" />
        <NamedChanges rows={report.by_platform} title="Platform" />
      </div>
      <div className="grid gap-2">
        <h3 className="font-medium">Sessions that moved most</h3>
        <MovedMost rows={moved} />
      </div>
      {report.not_recomputed.length > 0 && (
        <p className="text-muted text-sm">
          {toCount(report.not_recomputed.reduce((sum, { events }) => sum + events, 0))} events were
          scored by policies that are no longer stored, and were not compared again.
        </p>
      )}
    </div>
  )
}

/** Lost alerts by what people said of them: confirmed fraud that would be missed stands out. */
export function Judged({ rows }: { rows: Report['by_disposition'] }) {
  const countLost = (disposition: string) => {
    const row = rows.find(({ name }) => name === disposition)
    return row === undefined ? 0 : row.lost - row.may_stay
  }
  const missed = countLost('CONFIRMED')
  const saved = countLost('FALSE_POSITIVE')
  if (missed + saved === 0) return null
  return (
    <p className={missed > 0 ? 'text-bad' : 'text-good'}>
      {toCount(missed)} confirmed {missed === 1 ? 'alert' : 'alerts'} would be lost, and{' '}
      {toCount(saved)} false {saved === 1 ? 'positive' : 'positives'} avoided.
    </p>
  )
}
