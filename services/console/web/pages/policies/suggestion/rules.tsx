/** Simple rules that were found beside a suggestion; most can become a floor or a group. */
import { toRateText } from '#shared/core/outcomes/figure-text.ts'
import { Button } from '../../../components/button.tsx'
import { type Column, Table } from '../../../components/table.tsx'
import type { RuleFloor, RuleGroup } from '../policy-document.ts'
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
      cell: ({ features }) => {
        const text = features.join(' + ')
        return (
          <span className="font-mono text-sm" title={text}>
            {text}
          </span>
        )
      },
    },
    {
      id: 'older',
      head: 'Fraud, older',
      width: '7.5rem',
      cell: ({ found }) => toCases(found),
    },
    {
      id: 'newer',
      head: 'Fraud, newer',
      width: '7.5rem',
      cell: ({ tested }) => toCases(tested),
    },
    {
      id: 'precision',
      head: 'Share, newer',
      width: '9.5rem',
      cell: ({ tested }) => toRateText(tested.precision),
    },
    {
      id: 'week',
      head: 'A week',
      numeric: true,
      width: '4.5rem',
      cell: ({ tested }) => tested.alerts_a_week.toFixed(1),
    },
    {
      id: 'floor',
      head: <span className="sr-only">Add to the draft</span>,
      width: '12.5rem',
      cell: ({ floor, group, features }) => (
        <span className="flex gap-1">
          {floor === null ? (
            <span className="text-muted text-sm">a floor cannot say this</span>
          ) : (
            <Button
              aria-label={`Add as a floor: ${features.join(' + ')}`}
              onClick={() => onFloor(floor)}
              small
            >
              As a floor
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
        minWidth="60rem"
        rowKey={({ features }) => features.join(' ')}
        rows={rules}
      />
      <p className="text-muted text-sm">
        Found in the older sessions and counted in the newer ones: fraud of the labelled sessions
        that have all of these, and all sessions with them in a week. As a floor, all of them
        together lift the score to BLOCK’s threshold. As a group they count as one fact: together
        they bring what the heaviest of them does. Both go into a draft.
      </p>
    </div>
  )
}

const toCases = ({ fraud, labelled }: { fraud: number; labelled: number }): string =>
  `${fraud} of ${labelled}`
