/** The operator's sessions, each of which they can end. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type AnswerOf, api, ok } from '../../api/client.ts'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { Panel } from '../../components/page.tsx'
import { Loaded, SkeletonRows } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { toastFailure } from '../../components/toast.tsx'

type Listed = AnswerOf<'/admin/v1/sessions', 'get'>['data'][number]

const sessionsQuery = {
  queryKey: ['sessions'],
  queryFn: () => ok(api.GET('/admin/v1/sessions', { params: {} })),
}

export function SessionsPanel() {
  const sessions = useQuery(sessionsQuery)
  const client = useQueryClient()
  const end = useMutation({
    mutationFn: (session_id: string) =>
      ok(api.DELETE('/admin/v1/sessions/{session_id}', { params: { path: { session_id } } })),
    onSuccess: () => client.invalidateQueries({ queryKey: sessionsQuery.queryKey }),
    onError: (error) => toastFailure(`The session has not ended: ${error.message}`),
  })
  const columns: Column<Listed>[] = [
    { id: 'browser', head: 'Browser', cell: ({ user_agent }) => nameBrowser(user_agent) },
    { id: 'address', head: 'Address', cell: ({ address }) => address, width: '10rem' },
    {
      id: 'used',
      head: 'Last used',
      cell: ({ last_used_at }) => <Time at={last_used_at} />,
      width: '8rem',
    },
    {
      id: 'made',
      head: 'Signed in',
      cell: ({ created_at }) => <Time at={created_at} />,
      width: '8rem',
    },
    {
      id: 'end',
      head: <span className="sr-only">End</span>,
      width: '8rem',
      numeric: true,
      cell: ({ current, session_id }) =>
        current ? (
          <Badge tone="accent">this one</Badge>
        ) : (
          <Button
            busy={end.isPending && end.variables === session_id}
            onClick={() => end.mutate(session_id)}
            small
          >
            End
          </Button>
        ),
    },
  ]
  return (
    <Panel title="Sessions">
      <Loaded query={sessions} skeleton={<SkeletonRows rows={3} />}>
        {({ data }) => (
          <Table
            columns={columns}
            heightClass="max-h-96"
            label="Sessions"
            rowKey={({ session_id }) => session_id}
            rows={data}
          />
        )}
      </Loaded>
    </Panel>
  )
}

const browsers: [name: string, mark: RegExp][] = [
  ['Edge', /Edg\//],
  ['Firefox', /Firefox\//],
  ['Chrome', /Chrome\//],
  ['Safari', /Safari\//],
]
const systems: [name: string, mark: RegExp][] = [
  ['Android', /Android/],
  ['iOS', /iPhone|iPad/],
  ['Windows', /Windows/],
  ['macOS', /Mac OS X/],
  ['Linux', /Linux/],
]

/** `Firefox on Linux`; a program that says something else is shown as it is. */
function nameBrowser(userAgent: string): string {
  const find = (names: [string, RegExp][]) => names.find(([, mark]) => mark.test(userAgent))?.[0]
  const browser = find(browsers)
  const system = find(systems)
  if (browser === undefined || system === undefined) return userAgent || 'unknown'
  return `${browser} on ${system}`
}
