/** The scores of a fleet with a draft's thresholds as lines to move, and what they would mean. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { toRateText } from '#shared/core/outcomes/figure-text.ts'
import { api, ok } from '../../../api/client.ts'
import { controlClasses } from '../../../components/field.tsx'
import { Panel } from '../../../components/page.tsx'
import { Empty, Loaded, Skeleton } from '../../../components/states.tsx'
import { useExact } from '../../../components/time/time.tsx'
import { type FigureRow, FiguresTable } from '../figures-table.tsx'
import type { PolicyDocument } from '../policy-document.ts'
import { toCount } from '../suggestion/figures.ts'
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
      <ThresholdTable inForce={inForce} scores={scores} thresholds={thresholds} />
      <p className="text-muted text-sm">
        Risk scores of sessions as they were decided, of {scores.days.toFixed(1)} days: changed
        weights change them, which the backtest shows. Bars are as high as the square root of their
        sessions. Precision is of labelled sessions.
        {scores.as_of !== null && ` Labels as of ${exact(scores.as_of)}; they come late.`}
      </p>
    </div>
  )
}

function toRow(name: string, scores: FleetScores, at: number): FigureRow {
  const figures = toFigures(scores, at)
  const sessions = figures.harmed === 1 ? 'session' : 'sessions'
  return {
    name,
    cells: [
      at === 101 ? 'never' : at,
      figures.alerts_a_day.toFixed(1),
      toRateText(figures.recall),
      toRateText(figures.precision),
      <span key="harmed">
        {toCount(figures.harmed_users)}{' '}
        <span className="text-muted text-sm">
          in {toCount(figures.harmed)} {sessions}
        </span>
      </span>,
    ],
  }
}

function ThresholdTable({
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
      toRow(`${alerts}, draft`, scores, thresholds[name]),
      { ...toRow(`${alerts}, in force`, scores, inForce[name]), muted: true },
    ]
  })
  return (
    <FiguresTable
      groups={[{ rows }]}
      heads={['Alerts', 'From', 'Alerts a day', 'Recall', 'Precision', 'Honest users harmed']}
      label="What the thresholds mean"
      minWidth="50rem"
    />
  )
}
