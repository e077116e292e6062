/** Simple rules that were found beside a suggestion; most can become a floor or a group. */
import { Button } from '../../../components/button.tsx'
import { type Column, Table } from '../../../components/table.tsx'
import type { RuleFloor, RuleGroup } from '../policy-document.ts'
import { toRate } from './figures.ts'
import type { Suggestion } from './suggestion-run.ts'

type Rule = Suggestion['rules'][number]

export function Rules({
  rules,
  onFloor,
  onGroup,
}: {
  rules: Rule[]
  onFloor: (floor: RuleFloor) => void
  onGroup: (group: RuleGroup) => void
}) {
  if (rules.length === 0) return null
  const columns: Column<Rule>[] = [
    {
      id: 'features',
      head: 'These together',
      width: '20rem',
      cell: ({ features }) => {
        const text = features.join(' + ')
        return (
          <span className="font-mono text-sm" title={text}>
            {text}
          </span>
        )
      },
    },
    { id: 'older', head: 'Fraud of older', cell: ({ found }) => toCases(found) },
    { id: 'newer', head: 'Fraud of newer', cell: ({ tested }) => toCases(tested) },
    {
      id: 'precision',
      head: 'Precision, newer',
      width: '14rem',
      cell: ({ tested }) => toRate(tested.precision),
    },
    {
      id: 'week',
      head: 'A week',
      numeric: true,
      width: '5rem',
      cell: ({ tested }) => tested.alerts_a_week.toFixed(1),
    },
    {
      id: 'floor',
      head: <span className="sr-only">Add to the draft</span>,
      width: '13rem',
      cell: ({ floor, group, features }) => (
        <span className="flex gap-1">
          {floor === null ? (
            'no floor says this'
          ) : (
            <Button
              aria-label={`Add as a floor: ${features.join(' + ')}`}
              onClick={() => onFloor(floor)}
              small
            >
              Add as a floor
            </Button>
          )}
          {group !== null && (
            <Button
              aria-label={`As a group: ${features.join(' + ')}`}
              onClick={() => onGroup(group)}
              small
            >
              As a group
            </Button>
          )}
        </span>
      ),
    },
  ]
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-2">
      <h3 className="font-medium">Simple rules</h3>
      <Table
        columns={columns}
        heightClass="max-h-80"
        label="Simple rules"
        minWidth="71rem"
        rowKey={({ features }) => features.join(' ')}
        rows={rules}
      />
      <p className="text-muted text-sm">
        A floor lifts the score to BLOCK’s threshold when all of its signals score. A group counts
        its signals as one fact: together they bring what the heaviest of them does.
      </p>
    </div>
  )
}

const toCases = ({ fraud, labelled }: { fraud: number; labelled: number }): string =>
  `${fraud} of ${labelled}`
