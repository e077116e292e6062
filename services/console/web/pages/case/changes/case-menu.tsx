/** What is done with a case beside judging it: snooze, assign, merge and open again. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../../components/button.tsx'
import { Icon } from '../../../components/icons.tsx'
import { Menu, MenuItem, MenuLine } from '../../../components/menu.tsx'
import { toast, toastFailure } from '../../../components/toast.tsx'
import { counted } from '../../../components/words.ts'
import { useSignedIn } from '../../../shell/operator.ts'
import { type Case, readCaseAgain, showCase } from '../case.ts'
import { reopenAlerts } from '../judging/reopen.ts'
import { AssignDialog } from './assign-dialog.tsx'
import { assignCase, readQueuesAgain, snoozeCase, useChangeCase } from './changes.ts'
import { MergeDialog } from './merge-dialog.tsx'
import { SnoozeDialog } from './snooze-dialog.tsx'

type Asking = 'snooze' | 'assign' | 'merge' | null

export function CaseMenu({ shown, onOpen }: { shown: Case; onOpen: (caseId: string) => void }) {
  const client = useQueryClient()
  const { operator } = useSignedIn()
  const { assign, snooze } = useChangeCase()
  const [asking, ask] = useState<Asking>(null)
  const { case_id: id, tenant_id: tenant, assignee } = shown
  const save = useMutation({
    mutationFn: (call: () => Promise<unknown>) => call(),
    onSuccess: async () => {
      ask(null)
      await readCaseAgain(client, id)
      void client.invalidateQueries({ queryKey: ['case-counts', tenant] })
    },
  })
  const close = () => {
    ask(null)
    save.reset()
  }
  const reopen = () =>
    reopenAlerts(client, { shown, count: shown.alerts - shown.open_alerts }).then(
      (alerts) => toast(`Case opened again: ${counted(alerts, 'alert')}`),
      (error: Error) => toastFailure(`Not saved: ${error.message}`),
    )
  const isOpen = shown.state === 'OPEN'
  return (
    <>
      <Menu
        align="start"
        trigger={
          <Button>
            More
            <Icon name="down" size={12} />
          </Button>
        }
      >
        {assignee !== operator.email && (
          <MenuItem onSelect={() => assign(shown, operator.email)}>Assign to me</MenuItem>
        )}
        <MenuItem onSelect={() => ask('assign')}>Assign to …</MenuItem>
        {assignee !== null && <MenuItem onSelect={() => assign(shown, null)}>Unassign</MenuItem>}
        <MenuLine />
        {isOpen && <MenuItem onSelect={() => ask('snooze')}>Snooze …</MenuItem>}
        {isOpen && shown.snoozed_until !== null && (
          <MenuItem onSelect={() => snooze(shown, null)}>Back into the queue</MenuItem>
        )}
        <MenuItem onSelect={() => ask('merge')}>Merge into another case …</MenuItem>
        {shown.open_alerts < shown.alerts && (
          <MenuItem onSelect={() => void reopen()}>Open its judged alerts again</MenuItem>
        )}
      </Menu>
      {asking === 'snooze' && (
        <SnoozeDialog
          busy={save.isPending}
          error={save.error}
          onClose={close}
          onSnooze={(until) =>
            save.mutate(async () => {
              await snoozeCase(id, until)
              showCase(client, { case_id: id, snoozed_until: until })
            })
          }
        />
      )}
      {asking === 'assign' && (
        <AssignDialog
          busy={save.isPending}
          error={save.error}
          onAssign={(to) =>
            save.mutate(async () => {
              await assignCase(id, to)
              showCase(client, { case_id: id, assignee: to })
            })
          }
          onClose={close}
          tenant={tenant}
        />
      )}
      {asking === 'merge' && (
        <MergeDialog
          onClose={close}
          onMerged={(into) => {
            close()
            readQueuesAgain(client, tenant)
            onOpen(into)
          }}
          shown={shown}
        />
      )}
    </>
  )
}
