/** An editor of JSON or SQL. CodeMirror is loaded when the first one is shown. */
import { useEffect, useRef, useState } from 'react'
import { classes } from '../classes.ts'
import { Failed, Skeleton } from '../states.tsx'
import type { CodeEditorProps, Editor } from './editor-options.ts'

export function CodeEditor(props: CodeEditorProps) {
  const { label, value, faults, before, language, readOnly, tables } = props
  const box = useRef<HTMLDivElement>(null)
  const editor = useRef<Editor | null>(null)
  const [state, setState] = useState<'loading' | 'ready' | 'failed'>('loading')
  const [tries, setTries] = useState(0)
  const latest = useRef(props)
  latest.current = props

  useEffect(() => {
    const parent = box.current
    if (parent === null) return
    let gone = false
    setState('loading')
    import('./code-mirror.ts')
      .then(({ openEditor }) => {
        if (gone) return
        const current = latest.current
        editor.current = openEditor(parent, {
          ...current,
          onChange: (text) => latest.current.onChange?.(text),
          onRun: () => latest.current.onRun?.(),
        })
        setState('ready')
      })
      .catch(() => !gone && setState('failed'))
    return () => {
      gone = true
      editor.current?.close()
      editor.current = null
    }
  }, [label, language, readOnly, before, tables, tries])

  useEffect(() => editor.current?.setText(value), [value])
  useEffect(() => editor.current?.setFaults(faults ?? []), [faults, state])

  return (
    <div className={classes('relative overflow-hidden', props.className)}>
      <div className="h-full" ref={box} />
      {state === 'loading' && (
        <div
          aria-busy="true"
          aria-label="Loading the editor"
          className="absolute inset-0 grid content-start gap-2 p-3"
          role="status"
        >
          <Skeleton className="w-1/3" />
          <Skeleton className="w-1/2" />
          <Skeleton className="w-2/5" />
        </div>
      )}
      {state === 'failed' && (
        <div className="absolute inset-0 overflow-auto">
          <Failed error={null} onRetry={() => setTries(tries + 1)} />
        </div>
      )}
    </div>
  )
}
