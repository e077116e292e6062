/** CodeMirror with the languages and colours of the console; loaded when an editor is shown. */
import { autocompletion, closeBrackets, completionKeymap } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import { sql } from '@codemirror/lang-sql'
import {
  bracketMatching,
  foldGutter,
  foldKeymap,
  HighlightStyle,
  indentOnInput,
  syntaxHighlighting,
} from '@codemirror/language'
import { lintGutter, setDiagnostics } from '@codemirror/lint'
import { unifiedMergeView } from '@codemirror/merge'
import { EditorState, type Extension } from '@codemirror/state'
import { drawSelection, EditorView, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import type { CodeEditorProps, Editor } from './editor-options.ts'

const colors = EditorView.theme({
  '&': { height: '100%', fontSize: '0.8125rem', color: 'var(--text)', background: 'transparent' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
  '.cm-scroller': {
    fontFamily: 'var(--font-mono, ui-monospace, monospace)',
    lineHeight: '1.25rem',
  },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground':
    { background: 'var(--accent-soft)' },
  '.cm-gutters': {
    background: 'var(--panel)',
    color: 'var(--muted)',
    borderRight: '1px solid var(--line)',
  },
  '.cm-matchingBracket': { background: 'var(--hover)', outline: '1px solid var(--line-strong)' },
  '.cm-foldPlaceholder, .cm-collapsedLines': {
    background: 'var(--hover)',
    color: 'var(--muted)',
    border: 'none',
  },
  '.cm-tooltip': {
    background: 'var(--raised)',
    color: 'var(--text)',
    border: '1px solid var(--line-strong)',
    borderRadius: '6px',
  },
  '.cm-tooltip-autocomplete ul li[aria-selected]': {
    background: 'var(--accent)',
    color: 'var(--on-accent)',
  },
  // The marks of the package are images in data addresses, which the security policy refuses.
  '.cm-lint-marker-error': {
    content: 'none',
    width: '0.5rem',
    height: '0.5rem',
    margin: '0.375rem 0.2rem',
    borderRadius: '50%',
    background: 'var(--bad)',
  },
  '.cm-lintRange-error': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--bad) 1px',
  },
  '.cm-lintPoint-error:after': { borderBottomColor: 'var(--bad)' },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--bad)' },
  '.cm-changedLine, &.cm-merge-b .cm-changedLine': { background: 'var(--good-soft)' },
  '.cm-deletedChunk, .cm-deletedChunk del': {
    background: 'var(--bad-soft)',
    textDecoration: 'none',
  },
  '&.cm-merge-b .cm-changedText, .cm-changedText': { background: 'transparent', fontWeight: '600' },
  '.cm-deletedChunk .cm-deletedText': { background: 'transparent', fontWeight: '600' },
})

const highlighting = syntaxHighlighting(
  HighlightStyle.define([
    { tag: [tags.keyword, tags.operatorKeyword], color: 'var(--accent-text)', fontWeight: '500' },
    { tag: [tags.propertyName], color: 'var(--accent-text)' },
    { tag: [tags.string, tags.special(tags.string)], color: 'var(--good)' },
    { tag: [tags.number, tags.bool, tags.null], color: 'var(--warn)' },
    { tag: [tags.comment], color: 'var(--muted)', fontStyle: 'italic' },
  ]),
)

type Options = CodeEditorProps & { onChange: (text: string) => void; onRun: () => void }

/** Opens an editor inside an element. */
export function openEditor(parent: HTMLElement, options: Options): Editor {
  let given = options.value
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: options.value,
      extensions: [
        ...toExtensions(options),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return
          const text = update.state.doc.toString()
          if (text === given) return
          given = text
          options.onChange(text)
        }),
      ],
    }),
  })
  return {
    setText: (text) => {
      if (text === view.state.doc.toString()) return
      given = text
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } })
    },
    setFaults: (faults) => {
      const { length } = view.state.doc
      const diagnostics = faults.map(({ from, to, message }) => ({
        from: Math.min(from, length),
        to: Math.min(Math.max(from, to), length),
        message,
        severity: 'error' as const,
      }))
      view.dispatch(setDiagnostics(view.state, diagnostics))
    },
    close: () => view.destroy(),
  }
}

function toExtensions({ label, language, readOnly, tables, before, onRun }: Options): Extension[] {
  const run = {
    key: 'Mod-Enter',
    run: () => {
      onRun()
      return true
    },
  }
  return [
    EditorView.cspNonce.of(findNonce()),
    EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
    colors,
    highlighting,
    lineNumbers(),
    foldGutter(),
    drawSelection(),
    bracketMatching(),
    lintGutter(),
    language === 'json' ? json() : sql({ upperCaseKeywords: false, schema: tables ?? {} }),
    ...(before === undefined
      ? []
      : [
          unifiedMergeView({
            original: before,
            mergeControls: false,
            gutter: false,
            collapseUnchanged: { margin: 3, minSize: 6 },
          }),
        ]),
    ...(readOnly === true
      ? [EditorState.readOnly.of(true), EditorView.editable.of(false)]
      : [history(), indentOnInput(), closeBrackets(), autocompletion({ icons: false })]),
    // Tab leaves the editor, so that the keyboard is never caught in it.
    keymap.of([run, ...completionKeymap, ...foldKeymap, ...historyKeymap, ...defaultKeymap]),
  ]
}

/** The nonce of the document, which its content security policy wants of style elements. */
const findNonce = (): string =>
  document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? ''
