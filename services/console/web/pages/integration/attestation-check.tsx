/**
 * Admin → Integrations → the tenant → Attestation: evidence of a phone goes in, each step of its
 * check comes out. The server checks it as the edges do; nothing of it is stored.
 */
import { useMutation } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { attestationReasons } from '#shared/core/attestation/reasons.ts'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { type AnswerOf, ApiProblem, api, ok } from '../../api/client.ts'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { Input, Textarea } from '../../components/field.tsx'
import { Facts, Page as Frame, Panel } from '../../components/page.tsx'
import { Empty, Refused } from '../../components/states.tsx'

type Check = AnswerOf<'/admin/v1/tenants/{tenant_id}/attestation-check', 'post'>
type Chosen = { name: string; bytes: number; base64: string }

/** As the server's bound. */
const fileBytesMax = 128 * 1024

const toBase64 = (bytes: Uint8Array): string =>
  btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))

export function Page() {
  const { tenant: tenantId = '' } = useParams({ strict: false })
  const [text, setText] = useState('')
  const [file, setFile] = useState<Chosen | null>(null)
  const [fileFault, setFileFault] = useState<string>()
  const [challenge, setChallenge] = useState('')
  const check = useMutation({
    mutationFn: () =>
      ok(
        api.POST('/admin/v1/tenants/{tenant_id}/attestation-check', {
          params: { path: { tenant_id: tenantId } },
          body: {
            evidence_base64: file?.base64 ?? toBase64(new TextEncoder().encode(text)),
            ...(challenge.trim() === '' ? {} : { challenge: challenge.trim() }),
          },
        }),
      ),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    check.mutate()
  }
  const choose = async (chosen: Blob & { name: string }) => {
    setFileFault(undefined)
    if (chosen.size > fileBytesMax) {
      setFileFault('The file is larger than 128 KiB: no phone makes such evidence.')
      return
    }
    const bytes = new Uint8Array(await chosen.arrayBuffer())
    setFile({ name: chosen.name, bytes: bytes.length, base64: toBase64(bytes) })
  }
  const problem = check.error instanceof ApiProblem ? check.error : null
  return (
    <Frame
      about={
        <>
          Paste what a phone sent for{' '}
          <Link
            className="underline"
            params={{ tenant: tenantId }}
            to="/manage/integrations/$tenant"
          >
            {tenantId}
          </Link>{' '}
          and learn which step fails. Nothing of it is stored.
        </>
      }
      title="Attestation"
    >
      <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 lg:grid-cols-2">
        <Panel title="The evidence">
          <form className="grid grid-cols-[minmax(0,1fr)] gap-4 p-4" onSubmit={submit}>
            {file === null ? (
              <Textarea
                className="min-h-64 font-mono text-sm"
                error={problem?.of('evidence_base64')}
                hint="A chain in PEM, an App Attest object in base64, a Play token, or the body of a registration in JSON."
                label="Evidence"
                onChange={({ target }) => setText(target.value)}
                spellCheck={false}
                value={text}
              />
            ) : (
              <div className="grid gap-1">
                <span className="font-medium">Evidence</span>
                <span>
                  {file.name}, {file.bytes.toLocaleString('en')} bytes{' '}
                  <Button look="quiet" onClick={() => setFile(null)} small>
                    Paste text instead
                  </Button>
                </span>
                {problem?.of('evidence_base64') && (
                  <p className="text-bad text-sm" role="alert">
                    {problem.of('evidence_base64')}
                  </p>
                )}
              </div>
            )}
            <Input
              className="pt-1"
              error={fileFault}
              label="Or as a file"
              onChange={({ target }) => target.files?.[0] && void choose(target.files[0])}
              type="file"
            />
            <Input
              autoComplete="off"
              error={problem?.of('challenge')}
              hint="In base64. Leave it empty to take the one of the registration, or to judge none."
              label="Challenge"
              mono
              onChange={({ target }) => setChallenge(target.value)}
              spellCheck={false}
              value={challenge}
            />
            {problem !== null && problem.errors.length === 0 && <Refused error={check.error} />}
            <div>
              <Button busy={check.isPending} look="primary" type="submit">
                Check
              </Button>
            </div>
          </form>
        </Panel>
        <Panel title="The check">
          {check.data === undefined ? (
            <Empty title="Nothing was checked yet">
              <p>Each step is shown, and the first that fails is the reason.</p>
            </Empty>
          ) : (
            <Report check={check.data} />
          )}
        </Panel>
      </div>
    </Frame>
  )
}

function Report({ check }: { check: Check }) {
  const { provider, verdict, reason, level, steps, facts } = check
  const known = reason === null ? undefined : findReason(reason)
  const unjudged = (facts.not_judged as string[] | undefined) ?? []
  return (
    <div aria-live="polite">
      <Facts
        facts={[
          [
            'Verdict',
            <Badge key="verdict" tone={verdict === 'verified' ? 'good' : 'bad'}>
              {reason === null ? verdict : `${verdict}: ${reason}`}
            </Badge>,
          ],
          ['Provider', provider],
          ['Key', level],
          ...(unjudged.length === 0
            ? []
            : [['Not judged', unjudged.join(', ')] as [string, string]]),
        ]}
      />
      {known !== undefined && (
        <div className="border-line border-t px-4 py-3">
          <p>{known.meaning}</p>
          <p className="mt-1 text-muted">{known.advice}</p>
        </div>
      )}
      <ul aria-label="Steps" className="border-line border-t">
        {steps.map(({ step, ok: holds, detail }) => (
          <li className="flex gap-3 border-line border-b px-4 py-2" key={step}>
            <Badge tone={holds ? 'good' : 'bad'}>{holds ? 'ok' : 'failed'}</Badge>
            <div className="min-w-0">
              <p className="font-mono text-sm">{step}</p>
              <p className="wrap-anywhere text-muted text-sm">{toVisible(detail)}</p>
            </div>
          </li>
        ))}
      </ul>
      <details className="px-4 py-3">
        <summary className="cursor-pointer font-medium">Facts</summary>
        <pre className="mt-2 overflow-x-auto font-mono text-xs">{toVisibleJson(facts)}</pre>
      </details>
    </div>
  )
}

const findReason = (reason: string) =>
  Object.hasOwn(attestationReasons, reason)
    ? attestationReasons[reason as keyof typeof attestationReasons]
    : undefined

/** Each line by itself: escaping would take the line breaks with it. */
const toVisibleJson = (value: unknown): string =>
  JSON.stringify(value, null, 2).split('\n').map(toVisible).join('\n')
