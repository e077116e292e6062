/** Adds an app of a tenant, or replaces the one of its platform and id. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { ApiProblem } from '../../api/client.ts'
import { Button } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { Checkbox, Input, Select, Textarea } from '../../components/field.tsx'
import { Refused } from '../../components/states.tsx'
import { toast } from '../../components/toast.tsx'
import { type App, appsKey, type NewApp, putApp } from './apps.ts'

type Draft = {
  platform: App['platform']
  id: string
  signers: string
  team: string
  decryptionKey: string
  verificationKey: string
  development: boolean
}

const empty: Draft = {
  platform: 'android',
  id: '',
  signers: '',
  team: '',
  decryptionKey: '',
  verificationKey: '',
  development: false,
}

function toNewApp(draft: Draft): NewApp {
  const { platform, development, decryptionKey, verificationKey } = draft
  const id = draft.id.trim()
  if (platform === 'ios') return { platform, id, team: draft.team.trim(), development }
  const signers = draft.signers.split(/[\s,]+/).filter((signer) => signer !== '')
  const keys = {
    decryption_key: decryptionKey.trim(),
    verification_key: verificationKey.trim(),
  }
  const hasKeys = keys.decryption_key !== '' || keys.verification_key !== ''
  return { platform, id, signers, ...(hasKeys ? { play_keys: keys } : {}) }
}

export function AddApp({ tenantId, onClose }: { tenantId: string; onClose: () => void }) {
  const client = useQueryClient()
  const [draft, setDraft] = useState(empty)
  const change = (more: Partial<Draft>) => setDraft({ ...draft, ...more })
  const add = useMutation({
    mutationFn: () => putApp(tenantId, toNewApp(draft)),
    onSuccess: async ({ id }) => {
      await client.invalidateQueries({ queryKey: appsKey(tenantId) })
      toast(`Evidence of ${id} counts at every edge.`)
      onClose()
    },
  })
  const problem = add.error instanceof ApiProblem ? add.error : null
  const submit = (event: FormEvent) => {
    event.preventDefault()
    add.mutate()
  }
  const isAndroid = draft.platform === 'android'
  return (
    <Dialog
      description="An app of the same platform and id is replaced."
      locked={add.isPending}
      onClose={onClose}
      open
      title={`Add an app of ${tenantId}`}
    >
      <form className="grid gap-4" onSubmit={submit}>
        <Select
          label="Platform"
          onChange={({ target }) => change({ platform: target.value as App['platform'] })}
          value={draft.platform}
        >
          <option value="android">Android</option>
          <option value="ios">iOS</option>
        </Select>
        <Input
          autoComplete="off"
          error={problem?.of('id')}
          label={isAndroid ? 'Package' : 'Bundle id'}
          mono
          onChange={({ target }) => change({ id: target.value })}
          placeholder="com.example.app"
          required
          spellCheck={false}
          value={draft.id}
        />
        {isAndroid ? (
          <AndroidFields change={change} draft={draft} problem={problem} />
        ) : (
          <>
            <Input
              autoComplete="off"
              error={problem?.of('team')}
              hint="The ten characters of Membership details at Apple."
              label="Team"
              mono
              onChange={({ target }) => change({ team: target.value })}
              required
              spellCheck={false}
              value={draft.team}
            />
            <Checkbox
              checked={draft.development}
              hint="Builds of developers have them. Every one counts as debug_build."
              label="Keys of the development environment count"
              onChange={({ target }) => change({ development: target.checked })}
            />
          </>
        )}
        <Refused error={add.error} />
        <DialogActions>
          <Button disabled={add.isPending} onClick={onClose}>
            Cancel
          </Button>
          <Button busy={add.isPending} look="primary" type="submit">
            Add
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}

function AndroidFields({
  draft,
  change,
  problem,
}: {
  draft: Draft
  change: (more: Partial<Draft>) => void
  problem: ApiProblem | null
}) {
  const signers = problem?.errors.find(({ path }) => path.startsWith('$.signers'))
  return (
    <>
      <Textarea
        className="font-mono text-sm"
        error={signers?.message}
        hint="SHA-256 in hex, one per line. The Play Console shows it under App signing."
        label="Signing certificates"
        onChange={({ target }) => change({ signers: target.value })}
        required
        rows={3}
        spellCheck={false}
        value={draft.signers}
      />
      <Input
        autoComplete="off"
        error={problem?.of('play_keys.decryption_key')}
        hint="Of Play Integrity, to open tokens. Leave both keys empty to keep what is stored. They are never shown again."
        label="Play decryption key"
        mono
        onChange={({ target }) => change({ decryptionKey: target.value })}
        spellCheck={false}
        type="password"
        value={draft.decryptionKey}
      />
      <Input
        autoComplete="off"
        error={problem?.of('play_keys.verification_key')}
        hint="Going back to keys that Google manages, in the Play Console, ends both keys at once: every token is then rejected."
        label="Play verification key"
        mono
        onChange={({ target }) => change({ verificationKey: target.value })}
        spellCheck={false}
        value={draft.verificationKey}
      />
    </>
  )
}
