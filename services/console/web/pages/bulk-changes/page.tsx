/** The newest changes of many alerts: how far each is, and Cancel or Undo. */
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { buttonClasses } from '../../components/button.tsx'
import { Page as Frame, Panel } from '../../components/page.tsx'
import { Empty, Loaded } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { type BulkJob, jobsQuery } from '../alerts/bulk/bulk-jobs.ts'
import { BulkActions } from '../alerts/bulk/bulk-progress.tsx'
import { bulkProgress } from '../alerts/bulk/bulk-text.ts'

const columns: Column<BulkJob>[] = [
  { id: 'at', head: 'Begun', cell: ({ created_at: at }) => <Time at={at} />, width: '7rem' },
  {
    id: 'change',
    head: 'Change',
    cell: (job) => {
      const text = bulkProgress(job) + (job.undone_by === null ? '' : '; undone since')
      return <span title={text}>{text}</span>
    },
  },
  { id: 'action', head: 'Action', cell: (job) => <BulkActions job={job} />, width: '6rem' },
  {
    id: 'actor',
    head: 'Who',
    cell: ({ actor }) => <span title={actor}>{actor}</span>,
    width: '13rem',
  },
  {
    id: 'note',
    head: 'Note',
    cell: ({ note }) => <span title={note ?? undefined}>{note}</span>,
    width: '16rem',
  },
]

export function Page() {
  const { tenant = '' } = useParams({ strict: false })
  const jobs = useQuery(jobsQuery(tenant))
  const toAlerts = (
    <Link className={`${buttonClasses()} no-underline!`} params={{ tenant }} to="/t/$tenant/alerts">
      Alerts
    </Link>
  )
  return (
    <Frame
      about="Changes of many alerts at once, kept for 30 days. Undo puts each alert back to what it was, unless it was changed again since."
      controls={toAlerts}
      title="Bulk changes"
    >
      <Panel>
        <Loaded query={jobs}>
          {({ data }) =>
            data.length === 0 ? (
              <Empty title="No bulk change in the last 30 days">
                Filter the alerts, then choose what becomes of all of them.
              </Empty>
            ) : (
              <Table
                columns={columns}
                label="Bulk changes"
                minWidth="64rem"
                rowKey={({ job_id: id }) => id}
                rows={data}
              />
            )
          }
        </Loaded>
      </Panel>
    </Frame>
  )
}
