/** Changes the operator's password, which ends their other sessions. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useRef } from 'react'
import { ApiProblem, api, ok } from '../../api/client.ts'
import { sessionQuery, waysQuery } from '../../api/session.ts'
import { Button } from '../../components/button.tsx'
import { Input } from '../../components/field.tsx'
import { Panel } from '../../components/page.tsx'
import { Refused } from '../../components/states.tsx'
import { toast } from '../../components/toast.tsx'
import { useSignedIn } from '../../shell/operator.ts'
import { passwordCharactersMin, passwordHint } from '../../shell/password-rule.ts'

/** The form where a password can be changed, else why it cannot. */
export function PasswordPanel() {
  const { operator } = useSignedIn()
  const ways = useQuery(waysQuery)
  const isOff = ways.data?.passwords === false
  if (operator.password && !isOff) return <ChangePassword />
  return (
    <Panel title="Password">
      <p className="p-4 text-muted">
        {isOff
          ? 'Passwords are switched off here: everyone signs in through single sign-on.'
          : 'You have no password and sign in through single sign-on. An administrator can make a link by which you choose one.'}
      </p>
    </Panel>
  )
}

function ChangePassword() {
  const { operator } = useSignedIn()
  const client = useQueryClient()
  const form = useRef<HTMLFormElement>(null)
  const change = useMutation({
    mutationFn: (body: { current: string; password: string }) =>
      ok(api.PUT('/admin/v1/session/password', { params: {}, body })),
    onSuccess: (signedIn) => {
      client.setQueryData(sessionQuery.queryKey, signedIn)
      void client.invalidateQueries({ queryKey: ['sessions'] })
      form.current?.reset()
      toast('The password is changed. All other sessions of yours have ended.')
    },
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const data = new FormData(event.currentTarget)
    change.mutate({
      current: String(data.get('current') ?? ''),
      password: String(data.get('password') ?? ''),
    })
  }
  const problem = change.error instanceof ApiProblem ? change.error : null
  const isWrong = problem?.code === 'step_up_refused'
  const ofPassword = problem?.of('password')
  return (
    <Panel title="Password">
      <form className="grid gap-4 p-4" onSubmit={submit} ref={form}>
        <input autoComplete="username" hidden name="email" readOnly value={operator.email} />
        <Input
          autoComplete="current-password"
          error={isWrong ? problem?.message : undefined}
          label="Present password"
          name="current"
          required
          type="password"
        />
        <Input
          autoComplete="new-password"
          error={ofPassword}
          hint={passwordHint}
          label="New password"
          minLength={passwordCharactersMin}
          name="password"
          required
          type="password"
        />
        {!isWrong && ofPassword === undefined && <Refused error={change.error} />}
        <div>
          <Button busy={change.isPending} type="submit">
            Change the password
          </Button>
        </div>
      </form>
    </Panel>
  )
}
