/** Puts a device, a user or a connection on the allow or the deny list. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { ApiProblem } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Input, Select } from '../../components/field.tsx'
import { MomentInput } from '../../components/time/moment-input.tsx'
import { toast } from '../../components/toast.tsx'
import { timelineKey } from '../entities/timeline/key.ts'
import { Propose } from '../proposals/propose.tsx'
import {
  addEntry,
  type ListEntry,
  type Listed,
  listKinds,
  listNames,
  listsKey,
  networkDataQuery,
  toEffect,
} from './lists.ts'
import { isOfConnections, toMissingData } from './missing-data.ts'

/** @param listed what the entry is for; left out, the form has fields for it */
export function AddEntry({
  tenant,
  listed,
  onClose,
}: {
  tenant: string
  listed?: Listed
  onClose: () => void
}) {
  const client = useQueryClient()
  const [list, setList] = useState<ListEntry['list']>('deny')
  const [kind, setKind] = useState<ListEntry['kind']>(listed?.kind ?? 'device')
  const [id, setId] = useState(listed?.id ?? '')
  const { noun, label, hint } = listKinds[kind]
  const network = useQuery({ ...networkDataQuery, enabled: isOfConnections(kind) })
  const missing =
    isOfConnections(kind) && network.data !== undefined ? toMissingData(kind, network.data) : null
  const [reason, setReason] = useState('')
  const [expires, setExpires] = useState('')
  // The field is in the person's own time.
  const expiresAt = expires === '' ? null : new Date(expires).toISOString()
  const entry = { list, kind, id, reason: reason.trim(), expires_at: expiresAt }
  const add = useMutation({
    mutationFn: () => addEntry(tenant, entry),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: listsKey(tenant) })
      void client.invalidateQueries({ queryKey: timelineKey(tenant) })
      toast(`The ${noun} is on the ${list} list. Every edge acts on it within a second.`)
      onClose()
    },
  })
  const problem = add.error instanceof ApiProblem ? add.error : null
  const isBeside = problem !== null && problem.errors.length > 0 && listed === undefined
  const submit = (event: FormEvent) => {
    event.preventDefault()
    add.mutate()
  }
  return (
    <Dialog
      description={toEffect(list, kind)}
      locked={add.isPending}
      onClose={onClose}
      open
      title={listed === undefined ? `Add an entry of ${tenant}` : `Put this ${kind} on a list`}
    >
      <form className="grid gap-4" onSubmit={submit}>
        <Select
          label="List"
          onChange={({ target }) => setList(target.value as ListEntry['list'])}
          value={list}
        >
          <option value="deny">{listNames.deny}</option>
          <option value="allow">{listNames.allow}</option>
        </Select>
        {listed === undefined ? (
          <>
            <Select
              label="Kind"
              onChange={({ target }) => setKind(target.value as ListEntry['kind'])}
              value={kind}
            >
              {Object.entries(listKinds).map(([value, { name }]) => (
                <option key={value} value={value}>
                  {name}
                </option>
              ))}
            </Select>
            <Input
              autoComplete="off"
              error={problem?.of('id')}
              hint={hint}
              label={label}
              mono
              onChange={({ target }) => setId(target.value)}
              required
              spellCheck={false}
              value={id}
            />
          </>
        ) : (
          <p className="break-all font-mono text-sm">{toVisible(listed.id)}</p>
        )}
        {missing !== null && (
          <p className="rounded-lg bg-warn-soft px-3 py-2 text-warn" role="status">
            {missing}
          </p>
        )}
        <Input
          autoComplete="off"
          error={problem?.of('reason')}
          hint="A code such as chargeback. Alerts and webhooks show it."
          label="Reason"
          mono
          onChange={({ target }) => setReason(target.value)}
          required
          spellCheck={false}
          value={reason}
        />
        <MomentInput
          error={problem?.of('expires_at')}
          hint="Leave it empty for an entry that never expires."
          label="Expires"
          onChange={setExpires}
          value={expires}
        />
        <Propose
          body={{ kind: 'wide_list_entry', entry }}
          error={isBeside ? null : add.error}
          onCancel={onClose}
          pending={add.isPending}
          tenant={tenant}
        >
          <Button busy={add.isPending} look="primary" type="submit">
            Add
          </Button>
        </Propose>
      </form>
    </Dialog>
  )
}
