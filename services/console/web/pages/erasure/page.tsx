/** Admin → Erasure: removes a device or a user of a tenant from every store, with a receipt. */
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useEffect, useState } from 'react'
import { type AnswerOf, ApiProblem, api, ok } from '../../api/client.ts'
import { useTenant } from '../../api/tenants.ts'
import { Button, Spinner } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { Input, Select } from '../../components/field.tsx'
import { Id } from '../../components/id.tsx'
import { useLeaveGuard } from '../../components/leave-guard.ts'
import { Facts, Page as Frame, Panel } from '../../components/page.tsx'
import { Empty, Refused } from '../../components/states.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { TenantSelect } from '../../components/tenant-select.tsx'
import { Time } from '../../components/time/time.tsx'
import { useUrlSearch } from '../../components/url-state.ts'

type Receipt = AnswerOf<'/admin/v1/tenants/{tenant_id}/erasures', 'post'>
type Kind = 'device' | 'user'

export function Page() {
  const last = useTenant()
  const [search, setSearch] = useUrlSearch()
  const tenantId = search.tenant ?? last ?? ''
  const kind: Kind = search.kind === 'user' ? 'user' : 'device'
  const id = search.id ?? ''
  const [confirming, setConfirming] = useState(false)
  const erase = useMutation({
    mutationFn: () =>
      ok(
        api.POST('/admin/v1/tenants/{tenant_id}/erasures', {
          params: { path: { tenant_id: tenantId } },
          body: kind === 'user' ? { user_id: id } : { device_id: id },
        }),
      ),
    // The id is gone from the address too.
    onSuccess: () => setSearch({ id: '' }),
  })
  useLeaveGuard(erase.isPending, 'An erasure is running. It goes on; its receipt would be lost.')
  const problem = erase.error instanceof ApiProblem ? erase.error : null
  const beside = problem?.of(`${kind}_id`)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setConfirming(true)
  }
  return (
    <Frame
      about="Everything accepted before the erasure began is removed from ClickHouse, Postgres, the streams and the dead letters. It cannot be undone. Repeating it is safe and finishes one that was interrupted."
      title="Erasure"
    >
      <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 lg:grid-cols-2">
        <Panel title="Whom to erase">
          <form className="grid gap-4 p-4" onSubmit={submit}>
            <TenantSelect onChange={(tenant) => setSearch({ tenant })} value={tenantId} />
            <Select
              disabled={erase.isPending}
              label="Kind"
              onChange={({ target }) => setSearch({ kind: target.value })}
              value={kind}
            >
              <option value="device">Device</option>
              <option value="user">User or account, on all devices</option>
            </Select>
            <Input
              autoComplete="off"
              disabled={erase.isPending}
              error={beside}
              label={kind === 'device' ? 'Device id' : 'User or account id'}
              maxLength={256}
              mono
              onChange={({ target }) => setSearch({ id: target.value })}
              required
              spellCheck={false}
              value={id}
            />
            {beside === undefined && <Refused error={erase.error} />}
            <div>
              <Button
                busy={erase.isPending}
                disabled={tenantId === '' || id === ''}
                look="danger"
                type="submit"
              >
                Erase
              </Button>
            </div>
          </form>
        </Panel>
        <Panel title="Receipt">
          {erase.isPending ? (
            <Running />
          ) : erase.data === undefined ? (
            <Empty title="No erasure was run here yet">
              <p>The receipt counts what each store held before and after.</p>
            </Empty>
          ) : (
            <ReceiptView receipt={erase.data} />
          )}
        </Panel>
      </div>
      {confirming && (
        <Confirm
          id={id}
          kind={kind}
          onClose={() => setConfirming(false)}
          onConfirm={() => {
            setConfirming(false)
            erase.mutate()
          }}
          tenantId={tenantId}
        />
      )}
    </Frame>
  )
}

function Confirm({
  tenantId,
  kind,
  id,
  onClose,
  onConfirm,
}: {
  tenantId: string
  kind: Kind
  id: string
  onClose: () => void
  onConfirm: () => void
}) {
  const [typed, setTyped] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onConfirm()
  }
  return (
    <Dialog
      description={`The ${kind} and its events, sessions, alerts and deliveries are removed from ${tenantId}. This cannot be undone.`}
      onClose={onClose}
      open
      title={`Erase this ${kind}`}
    >
      <form className="grid gap-4" onSubmit={submit}>
        <code className="rounded-md border border-line bg-panel px-2.5 py-1.5 font-mono text-sm break-all">
          {id}
        </code>
        <Input
          autoComplete="off"
          autoFocus
          label="Type the id to confirm"
          mono
          onChange={({ target }) => setTyped(target.value)}
          spellCheck={false}
          value={typed}
        />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button disabled={typed !== id} look="danger" type="submit">
            Erase
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}

function Running() {
  const [seconds, setSeconds] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => setSeconds((before) => before + 1), 1_000)
    return () => clearInterval(timer)
  }, [])
  return (
    <div className="flex items-center gap-3 p-6" role="status">
      <Spinner />
      <span>
        Erasing for {seconds} s. Large tables take minutes; another call finishes what is
        interrupted.
      </span>
    </div>
  )
}

type CountRow = { store: string; before: number; after: number }

const columns: Column<CountRow>[] = [
  { id: 'store', head: 'Store', cell: ({ store }) => store },
  {
    id: 'before',
    head: 'Before',
    cell: ({ before }) => before.toLocaleString('en'),
    numeric: true,
    width: '6rem',
  },
  {
    id: 'after',
    head: 'After',
    cell: ({ after }) => after.toLocaleString('en'),
    numeric: true,
    width: '6rem',
  },
]

function ReceiptView({ receipt }: { receipt: Receipt }) {
  const { subject, counts, kept_mentions: kept, notes } = receipt
  const rows = Object.entries(counts).map(([store, count]) => ({ store, ...count }))
  const mentions =
    kept.events === null
      ? 'Events of others that mention the id were not counted: there are too many bodies.'
      : `${kept.events.toLocaleString('en')} events of others mention the id in a free field and stay.`
  return (
    <div>
      <Facts
        facts={[
          ['Erased', `${subject.kind} of ${receipt.tenant_id}`],
          ['SHA-256 of the id', <Id key="hash" most={26} value={subject.sha256} />],
          ['Began', <Time at={receipt.started_at} exact key="began" />],
          ['Ended', <Time at={receipt.finished_at} exact key="ended" />],
        ]}
      />
      <Table
        columns={columns}
        heightClass="max-h-96"
        label="What each store held"
        minWidth="22rem"
        rowKey={({ store }) => store}
        rows={rows}
      />
      <ul className="grid list-disc gap-1 py-3 pr-4 pl-8 text-muted">
        <li>{mentions}</li>
        {notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </div>
  )
}
