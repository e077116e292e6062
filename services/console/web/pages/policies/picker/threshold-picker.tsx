/** The scores of a fleet with a draft's thresholds as lines to move, and what they would mean. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, ok } from '../../../api/client.ts'
import { controlClasses } from '../../../components/field.tsx'
import { Panel } from '../../../components/page.tsx'
import { Empty, Loaded, Skeleton } from '../../../components/states.tsx'
import { useExact } from '../../../components/time/time.tsx'
import type { PolicyDocument } from '../policy-document.ts'
import { toCount, toRate } from '../suggestion/figures.ts'
import { ScoreChart } from './score-chart.tsx'
import { type FleetScores, type Thresholds, toFigures } from './threshold-figures.ts'

export function ThresholdPicker({
  tenant,
  document,
  inForce,
  onChange,
}: {
  tenant: string
  /** The draft. */
  document: PolicyDocument
  inForce: Thresholds
  onChange: (document: PolicyDocument) => void
}) {
  const [days, setDays] = useState('30')
  const scores = useQuery({
    queryKey: ['policy-scores', tenant, days],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/policy/scores', {
          params: { path: { tenant_id: tenant }, query: { days: Number(days) } },
        }),
      ),
  })
  const { review, block } = document.thresholds
  const isWhole = Number.isInteger(review) && Number.isInteger(block)
  return (
    <Panel
      action={
        <select
          aria-label="Sessions of the thresholds"
          className={`${controlClasses} h-8 w-auto!`}
          onChange={({ target }) => setDays(target.value)}
          value={days}
        >
          <option value="7">Last 7 days</option>
          <option value="30">Last 30 days</option>
          <option value="90">Last 90 days</option>
        </select>
      }
      title="Thresholds"
    >
      <Loaded query={scores} skeleton={<Skeleton className="m-4 h-64" />}>
        {(found) =>
          found.days === 0 ? (
            <Empty title="No session began in this time">
              Choose a longer time, or send telemetry first.
            </Empty>
          ) : isWhole ? (
            <Picked
              inForce={inForce}
              onMove={(thresholds) => onChange({ ...document, thresholds })}
              scores={found}
              thresholds={{ review, block }}
            />
          ) : (
            <Empty title="The thresholds are no whole numbers">Correct them above first.</Empty>
          )
        }
      </Loaded>
    </Panel>
  )
}

function Picked({
  scores,
  thresholds,
  inForce,
  onMove,
}: {
  scores: FleetScores & { as_of: string | null }
  thresholds: Thresholds
  inForce: Thresholds
  onMove: (thresholds: Thresholds) => void
}) {
  const exact = useExact()
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-4 p-4">
      <ScoreChart onMove={onMove} scores={scores} thresholds={thresholds} />
      <FiguresTable inForce={inForce} scores={scores} thresholds={thresholds} />
      <p className="text-muted text-sm">
        Risk scores of sessions as they were decided, of {scores.days.toFixed(1)} days: changed
        weights change them, which the backtest shows. Precision is of labelled sessions.
        {scores.as_of !== null && ` Labels as of ${exact(scores.as_of)}; they come late.`}
      </p>
    </div>
  )
}

function FiguresTable({
  scores,
  thresholds,
  inForce,
}: {
  scores: FleetScores
  thresholds: Thresholds
  inForce: Thresholds
}) {
  const rows = (['review', 'block'] as const).flatMap((name) => {
    const alerts = name === 'review' ? 'REVIEW or BLOCK' : 'BLOCK'
    return [
      { name: `${alerts}, draft`, isDraft: true, at: thresholds[name] },
      { name: `${alerts}, in force`, isDraft: false, at: inForce[name] },
    ]
  })
  const heads = ['From', 'Alerts a day', 'Recall', 'Precision', 'Honest users harmed']
  return (
    // biome-ignore lint/a11y/useSemanticElements: a region that scrolls must take the focus
    <div
      aria-label="What the thresholds mean"
      className="overflow-x-auto"
      role="region"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys scroll it
      tabIndex={0}
    >
      <table className="w-full min-w-[44rem]">
        <thead>
          <tr className="text-left text-muted">
            <th className="h-8 pr-4 font-medium" scope="col">
              Alerts
            </th>
            {heads.map((head) => (
              <th className="pr-4 font-medium" key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, isDraft, at }) => {
            const figures = toFigures(scores, at)
            return (
              <tr className={isDraft ? 'border-line border-t' : 'text-muted'} key={name}>
                <th className="h-8 pr-4 text-left font-normal" scope="row">
                  {name}
                </th>
                <td className="pr-4">{at === 101 ? 'never' : at}</td>
                <td className="pr-4">{figures.alerts_a_day.toFixed(1)}</td>
                <td className="pr-4">{toRate(figures.recall)}</td>
                <td className="pr-4">{toRate(figures.precision)}</td>
                <td className="pr-4">
                  {toCount(figures.harmed_users)}{' '}
                  <span className="text-muted text-sm">
                    in {toCount(figures.harmed)} {figures.harmed === 1 ? 'session' : 'sessions'}
                  </span>
                </td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}
