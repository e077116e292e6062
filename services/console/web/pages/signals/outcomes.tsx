/** What turned out to be fraud: how much was caught and missed, whom it harmed, and the money. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { Facts, Panel } from '../../components/page.tsx'
import { Empty, Loaded } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { TimeRange, useTimeRange } from '../../components/time/time-range.tsx'
import { toRateText } from '../../components/words.ts'

type Outcomes = AnswerOf<'/admin/v1/tenants/{tenant_id}/rule-performance', 'get'>['outcomes']
type Row = Outcomes['flags'][number]

/** The time in which a session began; without a choice all of it. */
const usual = 'any'

export function OutcomesTab({ tenant }: { tenant: string }) {
  const { from, to } = useTimeRange(usual)
  const performance = useQuery({
    queryKey: ['rule-performance', tenant, from, to],
    queryFn: () => {
      const query = { since: from, ...(to === null ? {} : { until: to }) }
      return ok(
        api.GET('/admin/v1/tenants/{tenant_id}/rule-performance', {
          params: { path: { tenant_id: tenant }, query },
        }),
      )
    },
    placeholderData: (before) => before,
  })
  return (
    <>
      <div className="flex flex-wrap items-end gap-2 pb-4">
        <TimeRange usual={usual} />
      </div>
      <Loaded query={performance}>
        {({ outcomes }) =>
          outcomes.fraud + outcomes.honest + outcomes.labels === 0 ? (
            <Empty title="Nothing is known yet">
              <p>
                Label devices, users, sessions or events on their pages, send labels with a key, or
                judge alerts: then this shows how much fraud is caught.
              </p>
            </Empty>
          ) : (
            <Known outcomes={outcomes} tenant={tenant} />
          )
        }
      </Loaded>
    </>
  )
}

function Known({ tenant, outcomes }: { tenant: string; outcomes: Outcomes }) {
  const { as_of: asOf, losses, labels, labels_without_session: unseen } = outcomes
  return (
    <>
      <Panel>
        <Facts
          facts={[
            [
              'Fraud caught',
              `${outcomes.caught} of ${outcomes.fraud} sessions: ${toRateText(outcomes.recall)}`,
            ],
            ['Fraud missed', `${outcomes.missed} sessions`],
            [
              'Honest users harmed',
              `${outcomes.harmed_users} users, ${outcomes.harmed} of ${outcomes.honest} sessions: ${toRateText(outcomes.harmed_share)}`,
            ],
            ...losses.map(({ currency, lost, caught, missed }): [string, string] => [
              `Lost in ${currency}`,
              `${lost}: ${caught} caught, ${missed} missed`,
            ]),
            [
              'Labels',
              <Link key="labels" search={{ tenant }} to="/manage/labels">
                {`${labels} that count, ${unseen} of them of no known session`}
              </Link>,
            ],
            ['As of', asOf === null ? 'nothing was copied yet' : <Time at={asOf} exact key="at" />],
          ]}
        />
      </Panel>
      <Panel title="By flag">
        {outcomes.flags.length === 0 ? (
          <Empty title="No flag on these sessions" />
        ) : (
          <Table
            columns={columns}
            label="By flag"
            minWidth="48rem"
            rowKey={({ flag }) => flag}
            rows={outcomes.flags}
          />
        )}
      </Panel>
    </>
  )
}

const columns: Column<Row>[] = [
  { id: 'flag', head: 'Flag', cell: ({ flag }) => flag, width: '24%' },
  { id: 'fraud', head: 'Fraud', numeric: true, cell: ({ fraud }) => fraud, width: '5rem' },
  {
    id: 'recall',
    head: 'Of all fraud',
    cell: ({ recall }) => toRateText(recall),
    width: '13.5rem',
  },
  { id: 'honest', head: 'Honest', numeric: true, cell: ({ honest }) => honest, width: '5rem' },
  {
    id: 'share',
    head: 'Of all honest',
    cell: ({ honest_share: share }) => toRateText(share),
    width: '13.5rem',
  },
  {
    id: 'lost',
    head: 'Lost',
    cell: ({ losses }) => losses.map(({ currency, lost }) => `${lost} ${currency}`).join(', '),
  },
]
