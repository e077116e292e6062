/**
 * Admin → Integrations → the tenant → Signature debugger: a body and its signature go in, what is
 * wrong comes out. The server compares; no secret reaches the page.
 */
import { useMutation } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { type AnswerOf, ApiProblem, api, ok } from '../../api/client.ts'
import { Badge } from '../../components/badge.tsx'
import { Button } from '../../components/button.tsx'
import { Input, Textarea } from '../../components/field.tsx'
import { Id } from '../../components/id.tsx'
import { Facts, Page as Frame, Panel } from '../../components/page.tsx'
import { Empty, Refused } from '../../components/states.tsx'

type Check = AnswerOf<'/admin/v1/tenants/{tenant_id}/signature-check', 'post'>
type Sent = { body?: string; body_base64?: string; signature: string }
type File = { name: string; bytes: number; base64: string }

/** More than the body of a submission may have, so that the answer can say so. */
const fileBytesMax = 96 * 1024

export function Page() {
  const { tenant: tenantId = '' } = useParams({ strict: false })
  const [body, setBody] = useState('')
  const [file, setFile] = useState<File | null>(null)
  const [fileFault, setFileFault] = useState<string>()
  const [signature, setSignature] = useState('')
  const check = useMutation({
    mutationFn: (sent: Sent) =>
      ok(
        api.POST('/admin/v1/tenants/{tenant_id}/signature-check', {
          params: { path: { tenant_id: tenantId } },
          body: sent,
        }),
      ),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    check.mutate(file === null ? { body, signature } : { body_base64: file.base64, signature })
  }
  const choose = async (chosen: Blob & { name: string }) => {
    setFileFault(undefined)
    if (chosen.size > fileBytesMax) {
      setFileFault('The file is larger than 96 KiB; a submission has at most 64 KiB.')
      return
    }
    const bytes = new Uint8Array(await chosen.arrayBuffer())
    const base64 = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
    setFile({ name: chosen.name, bytes: bytes.length, base64 })
  }
  const problem = check.error instanceof ApiProblem ? check.error : null
  return (
    <Frame
      about={
        <>
          Paste what was sent for{' '}
          <Link
            className="underline"
            params={{ tenant: tenantId }}
            to="/manage/integrations/$tenant"
          >
            {tenantId}
          </Link>{' '}
          and learn what is wrong. Nothing of it is stored, and no secret is shown.
        </>
      }
      title="Signature debugger"
    >
      <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 lg:grid-cols-2">
        <Panel title="The request">
          <form className="grid grid-cols-[minmax(0,1fr)] gap-4 p-4" onSubmit={submit}>
            <Input
              autoComplete="off"
              error={problem?.of('signature')}
              hint="The value of the header, as it was sent."
              label="X-Service-Signature"
              mono
              onChange={({ target }) => setSignature(target.value)}
              spellCheck={false}
              value={signature}
            />
            {file === null ? (
              <Textarea
                className="min-h-64 font-mono text-sm"
                error={problem?.of('body')}
                hint="Pasting can change line endings; a file keeps every byte."
                label="Body"
                onChange={({ target }) => setBody(target.value)}
                spellCheck={false}
                value={body}
              />
            ) : (
              <div className="grid gap-1">
                <span className="font-medium">Body</span>
                <span>
                  {file.name}, {file.bytes.toLocaleString('en')} bytes{' '}
                  <Button look="quiet" onClick={() => setFile(null)} small>
                    Paste text instead
                  </Button>
                </span>
              </div>
            )}
            <Input
              className="pt-1"
              error={fileFault}
              label="Or the body as a file"
              onChange={({ target }) => target.files?.[0] && void choose(target.files[0])}
              type="file"
            />
            {problem !== null && problem.errors.length === 0 && <Refused error={check.error} />}
            <div>
              <Button busy={check.isPending} look="primary" type="submit">
                Check
              </Button>
            </div>
          </form>
        </Panel>
        <Panel title="The answer">
          {check.data === undefined ? (
            <Empty title="Nothing was checked yet">
              <p>
                A 401 of the ingest API says the length and the SHA-256 of the body that arrived;
                compare them with those shown here.
              </p>
            </Empty>
          ) : (
            <Answer check={check.data} />
          )}
        </Panel>
      </div>
    </Frame>
  )
}

function Answer({ check }: { check: Check }) {
  const { valid, findings, body_errors: errors } = check
  return (
    <div aria-live="polite">
      <Facts
        facts={[
          [
            'Signature',
            <Badge key="valid" tone={valid ? 'good' : 'bad'}>
              {valid ? 'right' : 'refused with 401'}
            </Badge>,
          ],
          ['Form', check.signature_form],
          ['Body', `${check.received.bytes.toLocaleString('en')} bytes`],
          ['SHA-256', <Id key="hash" most={26} value={check.received.sha256} />],
        ]}
      />
      {findings.length > 0 && (
        <ul aria-label="What is wrong" className="border-line border-t">
          {findings.map(({ code, text }) => (
            <li className="border-line border-b px-4 py-3 last:border-b-0" key={code}>
              <p>{text}</p>
              <p className="mt-0.5 font-mono text-muted text-xs">{code}</p>
            </li>
          ))}
        </ul>
      )}
      {valid && errors.length === 0 && findings.length === 0 && (
        <p className="border-line border-t px-4 py-3">The edge accepts this submission.</p>
      )}
      {errors.length > 0 && (
        <section className="border-line border-t px-4 py-3">
          <h3 className="font-medium">The body is answered 400</h3>
          <ul className="mt-1 grid gap-1">
            {errors.map(({ path, message }) => (
              <li className="break-words" key={path + message}>
                <span className="font-mono text-sm">{path}</span> {message}
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  )
}
