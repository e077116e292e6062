/** Text that is shown to be copied: a secret that is shown once, and snippets of code. */
import { Button } from './button.tsx'
import { useCopy } from './id.tsx'

/** A value with its name and a button that copies it. */
export function CopyLine({ label, value }: { label: string; value: string }) {
  const [copied, copy] = useCopy()
  return (
    <section aria-label={label} className="grid gap-1">
      <span className="font-medium">{label}</span>
      <div className="flex items-center gap-2">
        <code className="min-w-0 flex-1 rounded-md border border-line bg-panel px-2.5 py-1.5 font-mono text-sm break-all select-all">
          {value}
        </code>
        <Button
          aria-label={`${copied ? 'Copied' : 'Copy'} ${label}`}
          icon={copied ? 'check' : 'copy'}
          onClick={() => copy(value)}
        >
          {copied ? 'Copied' : 'Copy'}
        </Button>
      </div>
    </section>
  )
}

export function CodeBlock({ label, code }: { label: string; code: string }) {
  const [copied, copy] = useCopy()
  return (
    <div className="relative">
      <section
        aria-label={label}
        className="max-h-96 overflow-auto rounded-md border border-line bg-panel"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys scroll it
        tabIndex={0}
      >
        <pre className="p-3 pr-24 font-mono text-sm leading-5">{code}</pre>
      </section>
      <Button
        aria-label={`${copied ? 'Copied' : 'Copy'} ${label}`}
        className="absolute top-2 right-2"
        icon={copied ? 'check' : 'copy'}
        onClick={() => copy(code)}
        small
      >
        {copied ? 'Copied' : 'Copy'}
      </Button>
    </div>
  )
}
