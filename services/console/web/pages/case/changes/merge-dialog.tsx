/** Moves all alerts of a case into another one, which is found by a part of its subject's id. */
import { useMutation, useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { api, ok } from '../../../api/client.ts'
import { Button } from '../../../components/button.tsx'
import { Dialog, DialogActions } from '../../../components/dialog.tsx'
import { Input } from '../../../components/field.tsx'
import { Loaded, Refused, SkeletonRows } from '../../../components/states.tsx'
import { counted } from '../../../components/words.ts'
import type { Case } from '../case.ts'
import { subjectNames } from '../case-words.ts'
import { mergeCase } from './changes.ts'

const foundMax = 20
const settleMs = 300

export function MergeDialog({
  shown,
  onClose,
  onMerged,
}: {
  shown: Case
  onClose: () => void
  /** Called with the case that has the alerts now. */
  onMerged: (caseId: string) => void
}) {
  const { case_id: id, tenant_id: tenant } = shown
  const [text, setText] = useState('')
  const [part, setPart] = useState('')
  const [into, setInto] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setPart(text.trim()), settleMs)
    return () => clearTimeout(timer)
  }, [text])
  const found = useQuery({
    queryKey: ['cases-to-merge', tenant, part],
    queryFn: async () => {
      const query = { state: 'OPEN,SNOOZED', limit: foundMax, ...(part === '' ? {} : { q: part }) }
      const { data } = await ok(
        api.GET('/admin/v1/tenants/{tenant_id}/cases', {
          params: { path: { tenant_id: tenant }, query },
        }),
      )
      return data.filter((one) => one.case_id !== id)
    },
    staleTime: 0,
  })
  const merge = useMutation({
    mutationFn: () => mergeCase(id, into),
    onSuccess: () => onMerged(into),
  })
  return (
    <Dialog
      description={`Its ${counted(shown.alerts, 'alert')} and notes move, and later alerts of its subject follow them. Single alerts can be split off again.`}
      locked={merge.isPending}
      onClose={onClose}
      open
      title="Merge into another case"
    >
      <form
        className="grid gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          if (into !== '') merge.mutate()
        }}
      >
        <Input
          autoComplete="off"
          label="Part of the other subject’s id"
          mono
          onChange={({ target }) => setText(target.value)}
          spellCheck={false}
          value={text}
        />
        <Loaded query={found} skeleton={<SkeletonRows rows={3} />}>
          {(cases) =>
            cases.length === 0 ? (
              <p className="text-muted">No other open case has this in the id of its subject.</p>
            ) : (
              <fieldset className="grid max-h-64 gap-px overflow-y-auto rounded-md border border-line">
                <legend className="sr-only">The other case</legend>
                {cases.map((one) => (
                  <label
                    className="flex min-h-9 items-center gap-2 px-3 hover:bg-hover"
                    key={one.case_id}
                  >
                    <input
                      checked={into === one.case_id}
                      className="size-4 shrink-0 accent-accent"
                      name="into"
                      onChange={() => setInto(one.case_id)}
                      type="radio"
                    />
                    <span className="text-muted text-sm">{subjectNames[one.subject.kind]}</span>
                    <bdi className="min-w-0 flex-1 truncate font-mono text-sm" translate="no">
                      {toVisible(one.subject.id)}
                    </bdi>
                    <span className="text-sm whitespace-nowrap">
                      {counted(one.alerts, 'alert')}
                    </span>
                  </label>
                ))}
              </fieldset>
            )
          }
        </Loaded>
        <Refused error={merge.error} />
        <DialogActions>
          <Button disabled={merge.isPending} onClick={onClose}>
            Cancel
          </Button>
          <Button busy={merge.isPending} disabled={into === ''} look="primary" type="submit">
            Merge
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}
