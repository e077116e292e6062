/** The next case: the server hands each to one operator. A switch opens it after a judgement. */
import { useMutation } from '@tanstack/react-query'
import { useRef, useSyncExternalStore } from 'react'
import { api, ok } from '../../api/client.ts'
import { toast, toastFailure } from '../../components/toast.tsx'
import type { Case } from '../case/case.ts'
import { toNextBody } from './filters/filter-values.ts'

/** @param open shows a case; with an empty id none */
export function useNextCase(
  tenant: string,
  filters: Record<string, string>,
  { openId, open }: { openId: string; open: (caseId: string) => void },
) {
  /** What the server handed out, for those that the list has not loaded. */
  const handed = useRef(new Map<string, Case>())
  const next = useMutation({
    mutationFn: () =>
      ok(
        api.POST('/admin/v1/tenants/{tenant_id}/cases/next', {
          params: { path: { tenant_id: tenant } },
          body: { ...toNextBody(filters), ...(openId === '' ? {} : { leave: openId }) },
        }),
      ),
    onSuccess: ({ case: found }) => {
      if (found === null) {
        toast('No case is left that nobody has.')
        open('')
        return
      }
      handed.current.set(found.case_id, found)
      open(found.case_id)
    },
    onError: (error) => toastFailure(`No next case: ${error.message}`),
  })
  return {
    get: () => {
      if (!next.isPending) next.mutate()
    },
    isPending: next.isPending,
    handedOut: (caseId: string): Case | undefined => handed.current.get(caseId),
  }
}

const key = 'di.opens-next'
const listeners = new Set<() => void>()
/** Storage can be switched off: the choice then lasts as long as the page. */
let opensNext = (() => {
  try {
    return localStorage.getItem(key) !== 'off'
  } catch {
    return true
  }
})()

/** Whether a judgement opens the next case; kept in this browser. */
export function useOpensNext(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => opensNext,
  )
}

function setOpensNext(on: boolean): void {
  opensNext = on
  try {
    localStorage.setItem(key, on ? 'on' : 'off')
  } catch {
    // It lasts as long as the page.
  }
  for (const listener of listeners) listener()
}

export function NextSwitch() {
  const on = useOpensNext()
  return (
    <label className="inline-flex items-center gap-2">
      <input
        checked={on}
        className="size-4 accent-accent"
        onChange={({ target }) => setOpensNext(target.checked)}
        type="checkbox"
      />
      Next opens by itself
    </label>
  )
}
