/** Switches the second factor on, with an authenticator app and recovery codes, and off. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, ok } from '../../api/client.ts'
import { sessionQuery } from '../../api/session.ts'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Panel } from '../../components/page.tsx'
import { Refused } from '../../components/states.tsx'
import { toast } from '../../components/toast.tsx'
import { useSignedIn } from '../../shell/operator.ts'
import {
  beginSetup,
  CodesStep,
  codesNote,
  SecretStep,
  type Setup,
  secretNote,
  useConfirmSetup,
} from './totp-setup.tsx'

export function SecondFactorPanel() {
  const { operator } = useSignedIn()
  const client = useQueryClient()
  const [setup, setSetup] = useState<Setup | null>(null)
  const reload = () => client.invalidateQueries({ queryKey: sessionQuery.queryKey })
  const start = useMutation({ mutationFn: beginSetup, onSuccess: setSetup })
  const end = useMutation({
    mutationFn: () => ok(api.DELETE('/admin/v1/session/totp', { params: {} })),
    onSuccess: async () => {
      await reload()
      toast('The second factor is off.')
    },
  })
  return (
    <Panel
      action={operator.totp ? <Badge tone="good">on</Badge> : <Badge tone="warn">off</Badge>}
      title="Second factor"
    >
      <div className="grid gap-3 p-4">
        <p className="text-muted">
          {operator.totp
            ? 'Signing in needs a code of your authenticator app, or one of your recovery codes.'
            : 'With an authenticator app, a stolen password alone is not enough to sign in.'}
        </p>
        <Refused error={start.error ?? end.error} />
        <div>
          {operator.totp ? (
            <Button busy={end.isPending} onClick={() => end.mutate()}>
              Switch off
            </Button>
          ) : (
            <Button busy={start.isPending} onClick={() => start.mutate()}>
              Set up
            </Button>
          )}
        </div>
      </div>
      {setup !== null && (
        <SetupDialog
          onClose={() => {
            setSetup(null)
            void reload()
          }}
          setup={setup}
        />
      )}
    </Panel>
  )
}

function SetupDialog({ setup, onClose }: { setup: Setup; onClose: () => void }) {
  const confirm = useConfirmSetup()
  const codes = confirm.data?.recovery_codes
  if (codes !== undefined) {
    return (
      <Dialog description={codesNote} locked onClose={onClose} open title="Your recovery codes">
        <CodesStep codes={codes} onDone={onClose} />
      </Dialog>
    )
  }
  return (
    <Dialog description={secretNote} onClose={onClose} open title="Set up the second factor">
      <SecretStep confirm={confirm} onCancel={onClose} setup={setup} />
    </Dialog>
  )
}
