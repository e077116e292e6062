/** A table of entries of the allow and deny lists, with a button that removes one. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { Button } from '../../components/button.tsx'
import { IdText } from '../../components/id.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Time } from '../../components/time/time.tsx'
import { toast, toastFailure } from '../../components/toast.tsx'
import { useMay } from '../../shell/operator.ts'
import { entityLink } from '../entities/entity-link.ts'
import { timelineKey } from '../entities/timeline/key.ts'
import {
  addEntry,
  isEntity,
  type ListEntry,
  listKinds,
  listNames,
  listsKey,
  type NewEntry,
  removeEntry,
  toShownId,
} from './lists.ts'

export function EntryTable({
  tenant,
  rows,
  withId,
  onEnd,
}: {
  tenant: string
  rows: ListEntry[]
  /** Whether to show what the entries are for. */
  withId: boolean
  onEnd?: () => void
}) {
  const mayChange = useMay('analyst')
  const client = useQueryClient()
  const refresh = () =>
    Promise.all(
      [listsKey(tenant), timelineKey(tenant)].map((queryKey) =>
        client.invalidateQueries({ queryKey }),
      ),
    )
  const undo = useMutation({
    mutationFn: (entry: NewEntry) => addEntry(tenant, entry),
    onSuccess: refresh,
    onError: (error, entry) =>
      toastFailure(`${toShownId(entry)} was not put back on the list: ${error.message}`, {
        onRetry: () => undo.mutate(entry),
      }),
  })
  const remove = useMutation({
    mutationFn: (entry: ListEntry) => removeEntry(tenant, entry.entry_id),
    onSuccess: async (_, entry) => {
      await refresh()
      const { list, kind, id, reason, expires_at } = entry
      const again = { list, kind, id, reason, expires_at }
      toast(
        `The ${listKinds[kind].noun} ${toShownId(entry)} is off the ${list} list.`,
        entry.expired ? {} : { onUndo: () => undo.mutate(again) },
      )
    },
    onError: (error, entry) =>
      toastFailure(`${toShownId(entry)} was not taken off the list: ${error.message}`, {
        onRetry: () => remove.mutate(entry),
      }),
  })
  const columns: Column<ListEntry>[] = [
    { id: 'list', head: 'List', cell: ({ list }) => listNames[list], width: '7rem' },
    ...(withId
      ? [
          {
            id: 'kind',
            head: 'Kind',
            cell: ({ kind }: ListEntry) => capitalize(listKinds[kind].noun),
            width: '5.5rem',
          },
          {
            id: 'id',
            head: 'Id',
            cell: ({ kind, id }: ListEntry) =>
              isEntity(kind) ? (
                <Link {...entityLink(kind, tenant, id)}>
                  <IdText value={id} />
                </Link>
              ) : (
                <IdText value={toShownId({ kind, id })} />
              ),
          },
        ]
      : []),
    { id: 'reason', head: 'Reason', cell: ({ reason }) => reason },
    {
      id: 'expires',
      head: 'Expires',
      cell: ({ expires_at, expired }) =>
        expires_at === null ? 'never' : expired ? 'expired' : <Time at={expires_at} exact />,
    },
    {
      id: 'added',
      head: 'Added',
      cell: ({ created_at }) => <Time at={created_at} />,
      width: '8rem',
    },
    { id: 'by', head: 'By', cell: ({ created_by }) => created_by },
    ...(mayChange
      ? [
          {
            id: 'remove',
            head: <span className="sr-only">Remove</span>,
            cell: (entry: ListEntry) => (
              <Button
                aria-label={`Remove ${listKinds[entry.kind].noun} ${toVisible(entry.id)} from the ${entry.list} list`}
                disabled={remove.isPending}
                onClick={() => remove.mutate(entry)}
                small
              >
                Remove
              </Button>
            ),
            width: '6.5rem',
          },
        ]
      : []),
  ]
  return (
    <Table
      columns={columns}
      label="Entries of the lists"
      {...(onEnd === undefined ? {} : { onEnd })}
      rowKey={({ entry_id }) => entry_id}
      rows={rows}
    />
  )
}

const capitalize = (text: string): string => `${text[0]!.toUpperCase()}${text.slice(1)}`
