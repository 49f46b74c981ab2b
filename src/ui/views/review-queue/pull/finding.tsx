import { useSignal } from '@preact/signals';
import type { FindingHunk, ReviewFinding } from '../../../../protocol/index.ts';
import { Dialog } from '../../../parts/dialog.tsx';
import { Glyph } from '../../../parts/glyphs.tsx';
import { Outward, Pill } from '../../review/parts.tsx';
import { placeOf, severityLooks } from '../../review/words.ts';
import type { DraftActs } from './acts.ts';
import { FindingForm } from './finding-form.tsx';
import { Hunk } from './hunk.tsx';
import { type ChangedLine, lineDiff } from './line-diff.ts';

export interface FindingProps {
  readonly finding: ReviewFinding;
  /** The diff around it; undefined: without a diff the quote is shown. */
  readonly hunk: FindingHunk | undefined;
  /** Version of the draft. */
  readonly version: number;
  /** Whether the draft can still be changed. */
  readonly isOpen: boolean;
  readonly isChosen: boolean;
  readonly isEditing: boolean;
  readonly acts: DraftActs;
  readonly onChoose: () => void;
  readonly onEdit: (isEditing: boolean) => void;
  /** Publishes only this finding. Absent: there is no other finding. */
  readonly onOnly: (() => void) | undefined;
}

const placements: Readonly<Record<ReviewFinding['placement'], string>> = {
  inline: 'inline comment',
  file: 'file comment',
  summary: 'in the summary',
};

/** One finding: its place, text and suggestion, with the decision about it. */
export function Finding(props: FindingProps) {
  const { finding, hunk, version, isOpen, isChosen, isEditing, acts, onChoose, onEdit, onOnly } = props;
  const isSkipped = finding.status === 'skipped';
  return (
    <li id={`finding-${finding.findingId}`} class={`finding ${isSkipped ? 'skipped' : ''} ${isChosen ? 'chosen' : ''}`}>
      <article aria-label={finding.title} onFocusIn={onChoose}>
        <header>
          <Pill look={severityLooks[finding.severity]} />
          <h3>{finding.title}</h3>
          <Decision finding={finding} isOpen={isOpen} acts={acts} onEdit={onEdit} onOnly={onOnly} />
        </header>
        <p class="place">
          <span class="mono">{placeOf(finding)}</span> <span class="quiet">{placements[finding.placement]}</span>
          <State finding={finding} />
        </p>
        {hunk && <Hunk hunk={hunk} finding={finding} />}
        {isEditing && isOpen ? (
          <FindingForm finding={finding} version={version} acts={acts} onDone={() => onEdit(false)} />
        ) : (
          <>
            <p class="words">{finding.body}</p>
            {(!hunk || finding.newText !== undefined) && <Change finding={finding} />}
          </>
        )}
        {finding.warnings.map((warning) => (
          <p key={warning} class="warn warning">
            <Glyph name="warning" /> {warning}
          </p>
        ))}
      </article>
    </li>
  );
}

function State({ finding }: { readonly finding: ReviewFinding }) {
  const { isPublished, isResolved, resolution, resolutionNote, url } = finding;
  if (isResolved)
    return (
      <span class="quiet">
        {' '}
        · resolved{resolution && `: ${resolution}`}
        {resolutionNote !== undefined && ` – ${resolutionNote}`}
      </span>
    );
  if (!isPublished) return null;
  return (
    <span>
      {' '}
      · <Outward url={url}>published, open</Outward>
    </span>
  );
}

type DecisionProps = Pick<FindingProps, 'finding' | 'isOpen' | 'acts' | 'onEdit' | 'onOnly'>;

function Decision({ finding, isOpen, acts, onEdit, onOnly }: DecisionProps) {
  const isResolving = useSignal(false);
  if (isOpen) {
    return (
      <span class="decision">
        {(['accepted', 'skipped'] as const).map((status) => (
          <button
            key={status}
            type="button"
            aria-pressed={finding.status === status}
            title={status === 'accepted' ? 'Publish it with the review (a)' : 'Leave it out of the review (s)'}
            onClick={() => void acts.setStatus(finding, status)}
          >
            {status === 'accepted' ? 'Accept' : 'Skip'}
          </button>
        ))}
        <button type="button" class="plain" title="Reword it (e)" onClick={() => onEdit(true)}>
          Edit
        </button>
        {onOnly && (
          <button type="button" class="plain" title="Skip the other findings and publish" onClick={onOnly}>
            Publish only this…
          </button>
        )}
      </span>
    );
  }
  if (!finding.isPublished || finding.isResolved) return null;
  return (
    <span class="decision">
      <button
        type="button"
        onClick={() => {
          isResolving.value = true;
        }}
      >
        Resolve…
      </button>
      {isResolving.value && (
        <ResolveDialog
          finding={finding}
          acts={acts}
          onClose={() => {
            isResolving.value = false;
          }}
        />
      )}
    </span>
  );
}

/** Resolves a published finding as fixed or dismissed. */
function ResolveDialog({
  finding,
  acts,
  onClose,
}: Pick<DecisionProps, 'finding' | 'acts'> & { readonly onClose: () => void }) {
  const note = useSignal('');
  const end = (resolution: 'fixed' | 'dismissed') => {
    onClose();
    void acts.resolve(finding, resolution, note.peek().trim());
  };
  return (
    <Dialog title={`Resolve “${finding.title}”`} onClose={onClose}>
      <div class="inside edit">
        <p class="quiet">Its conversation on the pull request is resolved, and it is not raised again.</p>
        <label>
          Note (may be empty)
          <input
            value={note.value}
            maxLength={1_000}
            onInput={(event) => {
              note.value = event.currentTarget.value;
            }}
          />
        </label>
        <footer>
          <button type="button" onClick={() => end('dismissed')}>
            Dismiss
          </button>
          <button type="button" class="main" onClick={() => end('fixed')}>
            It is fixed
          </button>
        </footer>
      </div>
    </Dialog>
  );
}

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
