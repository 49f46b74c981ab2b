import type { ReviewFinding } from '../../../../protocol/index.ts';
import { type ChangedLine, lineDiff } from './line-diff.ts';

const marks: Readonly<Record<ChangedLine['kind'], string>> = { kept: ' ', removed: '−', added: '+' };
const words: Readonly<Record<ChangedLine['kind'], string>> = { kept: '', removed: 'Removed: ', added: 'Added: ' };

/** The lines of a finding, with its suggestion as a diff. Renders nothing for a finding without lines. */
export function Change({ finding }: { readonly finding: ReviewFinding }) {
  const { oldText, newText, line, startLine, path, title } = finding;
  if (oldText === undefined && newText === undefined) return null;
  const before = oldText ?? '';
  const lines = lineDiff(before, newText ?? before, startLine ?? line);
  const label = `${newText === undefined ? 'Lines' : 'Suggestion'} in ${path}: ${title}`;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1)
    <section class="change" aria-label={label} tabIndex={0}>
      <pre>
        {lines.map(({ kind, text, line: number }, index) => (
          <span key={`${index}${kind}`} class={kind}>
            <i aria-hidden="true">{number ?? ''}</i>
            <b aria-hidden="true">{marks[kind]}</b>
            {words[kind] !== '' && <span class="unseen">{words[kind]}</span>}
            {`${text}\n`}
          </span>
        ))}
      </pre>
    </section>
  );
}
