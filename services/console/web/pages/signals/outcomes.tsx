/** What turned out to be fraud: how much was caught and missed, whom it harmed, and the money. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { toAmountText, toRateText } from '#shared/core/outcomes/figure-text.ts'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { Facts, Panel } from '../../components/page.tsx'
import { Empty, Loaded } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { TimeRange, useTimeRange } from '../../components/time/time-range.tsx'
import { counted } from '../../components/words.ts'

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
    <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
      <Panel>
        <Facts
          facts={[
            [
              'Fraud caught',
              `${toCount(outcomes.caught)} of ${counted(outcomes.fraud, 'session')}: ${toRateText(outcomes.recall)}`,
            ],
            ['Fraud missed', counted(outcomes.missed, 'session')],
            [
              'Honest users harmed',
              `${counted(outcomes.harmed_users, 'user')}, in ${toCount(outcomes.harmed)} of ${counted(outcomes.honest, 'honest session')}: ${toRateText(outcomes.harmed_share)}`,
            ],
            ...losses.map(({ currency, lost, caught, missed }): [string, string] => [
              `Money lost, ${currency}`,
              `${toAmountText(lost)}: ${toAmountText(caught)} caught, ${toAmountText(missed)} missed`,
            ]),
            [
              'Labels',
              <Link key="labels" search={{ tenant }} to="/manage/labels">
                {`${toCount(labels)} count; ${toCount(unseen)} of them name no known session`}
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
            minWidth="60rem"
            rowKey={({ flag }) => flag}
            rows={outcomes.flags}
          />
        )}
      </Panel>
    </div>
  )
}

const toCount = (value: number) => value.toLocaleString('en')

const columns: Column<Row>[] = [
  {
    id: 'flag',
    head: 'Flag',
    cell: ({ flag }) => <span title={flag}>{flag}</span>,
    width: '15rem',
  },
  {
    id: 'fraud',
    head: 'Fraud',
    numeric: true,
    cell: ({ fraud }) => toCount(fraud),
    width: '5rem',
  },
  { id: 'recall', head: 'Of all fraud', cell: ({ recall }) => toRateText(recall), width: '10rem' },
  {
    id: 'honest',
    head: 'Honest',
    numeric: true,
    cell: ({ honest }) => toCount(honest),
    width: '5rem',
  },
  {
    id: 'share',
    head: 'Of all honest',
    cell: ({ honest_share: share }) => toRateText(share),
    width: '10rem',
  },
  {
    id: 'lost',
    head: 'Money lost',
    cell: ({ losses }) => {
      const text = losses
        .map(({ currency, lost }) => `${toAmountText(lost)} ${currency}`)
        .join(', ')
      return <span title={text}>{text}</span>
    },
  },
]
