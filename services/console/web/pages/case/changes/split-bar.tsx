/** Moves the alerts that are selected into a case of their own. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Button } from '../../../components/button.tsx'
import { Refused } from '../../../components/states.tsx'
import { toast, toastFailure } from '../../../components/toast.tsx'
import { counted } from '../../../components/words.ts'
import type { Case } from '../case.ts'
import { mergeCase, readQueuesAgain, splitCase } from './changes.ts'

export function SplitBar({
  shown,
  alertIds,
  onDone,
  children,
}: {
  shown: Case
  alertIds: string[]
  /** Called with the new case. */
  onDone: (caseId: string) => void
  children: ReactNode
}) {
  const client = useQueryClient()
  const { case_id: from, tenant_id: tenant } = shown
  const split = useMutation({
    mutationFn: () => splitCase(from, alertIds),
    onSuccess: ({ case: made }) => {
      const readAgain = () => {
        readQueuesAgain(client, tenant)
        void client.invalidateQueries({ queryKey: ['case-alerts'] })
      }
      readAgain()
      toast(`${counted(alertIds.length, 'alert')} moved into a case of their own`, {
        onUndo: () =>
          void mergeCase(made.case_id, from).then(
            () => {
              readAgain()
              onDone(from)
            },
            (error: Error) => toastFailure(`Not undone: ${error.message}`),
          ),
      })
      onDone(made.case_id)
    },
  })
  const isAll = alertIds.length >= shown.alerts
  return (
    <div className="grid gap-2 border-line border-t p-2 pl-4">
      <div className="flex flex-wrap items-center gap-2">
        <span className="font-medium" role="status">
          {alertIds.length} selected
        </span>
        <Button busy={split.isPending} disabled={isAll} onClick={() => split.mutate()} small>
          Split off into a new case
        </Button>
        {children}
        {isAll && <span className="text-muted text-sm">One alert at least stays.</span>}
      </div>
      <Refused error={split.error} />
    </div>
  )
}
