/** What the server says about the text of a draft. */
import { useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import { type ApiProblem, api, ok, type ProblemDetail } from '../../../api/client.ts'
import type { Fault } from '../../../components/editor/editor-options.ts'
import { findPlace } from '../json-places.ts'
import { parseDocument } from '../policy-document.ts'

const typingMs = 400

/** What the server finds wrong with a text, once typing has paused. */
export function useCheck(
  tenant: string,
  text: string,
  enabled: boolean,
): { state: 'checking' | 'valid' | 'invalid' | 'failed'; errors: ProblemDetail[]; error: unknown } {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), typingMs)
    return () => clearTimeout(timer)
  }, [text])
  const document = useMemo(() => parseDocument(settled), [settled])
  const check = useQuery({
    queryKey: ['policy-check', tenant, settled],
    queryFn: () =>
      ok(
        api.POST('/admin/v1/tenants/{tenant_id}/policy/check', {
          params: { path: { tenant_id: tenant } },
          body: document,
        }),
      ),
    enabled: enabled && document !== null,
    gcTime: 60_000,
  })
  if (parseDocument(text) === null)
    return { state: 'invalid', errors: [findSyntaxError(text)], error: null }
  if (check.error) return { state: 'failed', errors: [], error: check.error as ApiProblem }
  if (settled !== text || check.data === undefined) {
    return { state: 'checking', errors: [], error: null }
  }
  return { state: check.data.valid ? 'valid' : 'invalid', errors: check.data.errors, error: null }
}

function findSyntaxError(text: string): ProblemDetail {
  try {
    JSON.parse(text)
    return { path: '$', message: 'must be an object' }
  } catch (error) {
    return { path: '$', message: error instanceof Error ? error.message : 'is not JSON' }
  }
}

/** The errors at their places of the text. */
export const toFaults = (text: string, errors: ProblemDetail[]): Fault[] =>
  errors.map(({ path, message }) => {
    const at = /position (\d+)/.exec(message)?.[1]
    const place =
      at === undefined ? findPlace(text, path) : { from: Number(at), to: Number(at) + 1 }
    return { ...place, message: path === '$' ? message : `${path} ${message}` }
  })
