/** What an editor of code is given, and what can be done with one. */

/** A fault at a place of the text, in characters. */
export type Fault = { from: number; to: number; message: string }

export type CodeEditorProps = {
  /** What the text is, for screen readers. */
  label: string
  value: string
  language: 'json' | 'sql'
  onChange?: (value: string) => void
  /** Ctrl/Cmd-Enter. */
  onRun?: () => void
  readOnly?: boolean
  faults?: Fault[]
  /** Tables with their columns, which typing completes. */
  tables?: Record<string, string[]>
  /** Shows what changed since this text. */
  before?: string
  /** A class of its height. */
  className?: string
}

export type Editor = {
  setText: (text: string) => void
  setFaults: (faults: Fault[]) => void
  close: () => void
}
