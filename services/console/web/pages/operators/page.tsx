/** Admin → Operators: who may use the console, and the invitations that are open. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, ok } from '../../api/client.ts'
import { Badge, type Tone } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { Page as Frame, Panel } from '../../components/page.tsx'
import { Empty, Loaded, SkeletonRows } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { toast, toastFailure } from '../../components/toast.tsx'
import { useSignedIn } from '../../shell/operator.ts'
import { ChangeOperator } from './change-operator.tsx'
import { InviteOperator } from './invite-operator.tsx'
import {
  type Invitation,
  invitationsQuery,
  type ListedOperator,
  operatorsQuery,
} from './operators.ts'
import { nameScope } from './scope.tsx'
import { SecondFactorRulePanel } from './second-factor-rule.tsx'

export function Page() {
  const { operator: self } = useSignedIn()
  const [inviting, setInviting] = useState(false)
  const [changing, setChanging] = useState<ListedOperator | null>(null)
  const operators = useQuery(operatorsQuery)
  const invitations = useQuery(invitationsQuery)
  const client = useQueryClient()
  const withdraw = useMutation({
    mutationFn: ({ invitation_id: id }: Invitation) =>
      ok(api.POST('/admin/v1/operators/invitations/withdraw', { body: { invitation_id: id } })),
    onSuccess: ({ email }) => toast(`The invitation of ${email} is withdrawn.`),
    onError: (error, { email }) =>
      toastFailure(`The invitation of ${email} was not withdrawn: ${error.message}`),
    onSettled: () => client.invalidateQueries({ queryKey: invitationsQuery.queryKey }),
  })
  const columns: Column<ListedOperator>[] = [
    {
      id: 'name',
      head: 'Name',
      cell: ({ name, operator_id }) => (
        <>
          {name} {operator_id === self.operator_id && <span className="text-muted">(you)</span>}
        </>
      ),
    },
    { id: 'email', head: 'Email', cell: ({ email }) => email },
    { id: 'role', head: 'Role', cell: ({ role }) => role, width: '6.5rem' },
    { id: 'tenants', head: 'Tenants', cell: ({ tenants }) => nameScope(tenants), width: '9rem' },
    {
      id: 'state',
      head: 'State',
      width: '10rem',
      cell: ({ disabled, password, totp }) =>
        disabled ? (
          <Badge tone="bad">disabled</Badge>
        ) : totp ? (
          <Badge tone="good">second factor</Badge>
        ) : password ? (
          <Badge tone="warn">password only</Badge>
        ) : (
          <Badge tone="good">single sign-on</Badge>
        ),
    },
    {
      id: 'seen',
      head: 'Signed in',
      cell: ({ last_signed_in_at: at }) => <Time at={at} />,
      width: '8rem',
    },
    {
      id: 'change',
      head: <span className="sr-only">Change</span>,
      width: '6.5rem',
      numeric: true,
      cell: (operator) => (
        <Button aria-label={`Change ${operator.name}`} onClick={() => setChanging(operator)} small>
          Change
        </Button>
      ),
    },
  ]
  return (
    <Frame
      action={
        <Button icon="plus" look="primary" onClick={() => setInviting(true)}>
          Invite
        </Button>
      }
      title="Operators"
    >
      <Panel>
        <Loaded query={operators}>
          {({ data }) => (
            <Table
              columns={columns}
              label="Operators"
              minWidth="56rem"
              rowKey={({ operator_id }) => operator_id}
              rows={data}
            />
          )}
        </Loaded>
      </Panel>
      {operators.data && <SecondFactorRulePanel tenant={null} />}
      {/* Below a list of unknown length, so it comes after it: nothing moves. */}
      {operators.data && (
        <Panel title="Invitations">
          <Loaded query={invitations} skeleton={<SkeletonRows rows={3} />}>
            {({ data }) =>
              data.length === 0 ? (
                <Empty title="No invitation was made yet" />
              ) : (
                <Table
                  columns={[...invitationColumns, withdrawColumn(withdraw)]}
                  heightClass="max-h-80"
                  label="Invitations"
                  minWidth="48rem"
                  rowKey={({ invitation_id }) => invitation_id}
                  rows={data}
                />
              )
            }
          </Loaded>
        </Panel>
      )}
      {inviting && <InviteOperator onClose={() => setInviting(false)} />}
      {changing && <ChangeOperator onClose={() => setChanging(null)} operator={changing} />}
    </Frame>
  )
}

const stateTones: Record<Invitation['state'], Tone> = {
  open: 'accent',
  accepted: 'good',
  revoked: 'neutral',
  expired: 'neutral',
}

const withdrawColumn = ({
  mutate,
  isPending,
}: {
  mutate: (invitation: Invitation) => void
  isPending: boolean
}): Column<Invitation> => ({
  id: 'withdraw',
  head: <span className="sr-only">Withdraw</span>,
  numeric: true,
  cell: (invitation) =>
    invitation.state === 'open' && (
      <Button
        aria-label={`Withdraw the invitation of ${invitation.email}`}
        disabled={isPending}
        onClick={() => mutate(invitation)}
        small
      >
        Withdraw
      </Button>
    ),
  width: '7rem',
})

const invitationColumns: Column<Invitation>[] = [
  { id: 'email', head: 'Email', cell: ({ email }) => email },
  { id: 'role', head: 'Role', cell: ({ role }) => role, width: '6.5rem' },
  { id: 'tenants', head: 'Tenants', cell: ({ tenants }) => nameScope(tenants), width: '9rem' },
  {
    id: 'state',
    head: 'State',
    cell: ({ state }) => <Badge tone={stateTones[state]}>{state}</Badge>,
    width: '7rem',
  },
  { id: 'by', head: 'By', cell: ({ created_by }) => created_by },
  {
    id: 'ends',
    head: 'Valid until',
    cell: ({ expires_at }) => <Time at={expires_at} />,
    width: '9rem',
  },
]
