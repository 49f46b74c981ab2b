import { useMemo, useState } from 'preact/hooks';
import type { ChangeReviewEvent } from '../../../../../machines/browser.ts';
import { visible } from '../../../../lib/browser.ts';
import { type FileSection, rowsOfSection } from './sections.ts';
import { Sides } from './sides.tsx';

export type Decision = 'kept' | 'reverted' | null;

export interface FileCardProps {
  readonly section: FileSection;
  readonly decision: Decision;
  /** Whether another file is being reverted, or the changes are being read. */
  readonly isBusy: boolean;
  /** Whether the changes are read-only. */
  readonly isFixed: boolean;
  /** Whether the selected call has changed this file. */
  readonly isCurrent: boolean;
  /** Whether the change is shown initially. */
  readonly isOpenAtFirst: boolean;
  readonly send: (event: ChangeReviewEvent) => void;
}

const changeWords = { created: 'created', modified: 'changed', deleted: 'deleted' } as const;

/** One changed file: its change, and the decision of the person about it. */
export function FileCard(props: FileCardProps) {
  const { section, decision, isBusy, isFixed, isCurrent, isOpenAtFirst, send } = props;
  const [chosen, setChosen] = useState<boolean | null>(null);
  const { file, modes } = section;
  const { path, change, kind, additions, deletions } = file;
  const name = visible(path, { multiline: false });
  const isOpen = chosen ?? (isCurrent || (isOpenAtFirst && decision === null));
  return (
    <section class={`file-change ${decision ?? ''}`} aria-label={name} aria-current={isCurrent ? 'true' : undefined}>
      <header>
        <button type="button" class="bare" aria-expanded={isOpen} onClick={() => setChosen(!isOpen)}>
          <span class="twist" aria-hidden="true" />
          <span class="mono name">{name}</span>
        </button>
        <span class="quiet">
          {kind === 'file' ? '' : `${kind} `}
          {changeWords[change]}
          {modes && `, mode ${modes.join(' → ')}`}
        </span>
        <span class="counts">
          <span class="ok">+{additions.toLocaleString()}</span>{' '}
          <span class="danger">−{deletions.toLocaleString()}</span>
        </span>
        {!isFixed && <Acts path={path} name={name} decision={decision} isBusy={isBusy} send={send} />}
      </header>
      {isOpen && <Change section={section} />}
    </section>
  );
}

type ActsProps = Pick<FileCardProps, 'decision' | 'isBusy' | 'send'> & { readonly path: string; readonly name: string };

function Acts({ path, name, decision, isBusy, send }: ActsProps) {
  const act = (word: string, type: 'KEEP' | 'RECONSIDER' | 'REVERT' | 'TAKE_BACK') => (
    <button type="button" disabled={isBusy} aria-label={`${word} ${name}`} onClick={() => send({ type, path })}>
      {word}
    </button>
  );
  return (
    <span class="acts">
      {decision === 'reverted' && (
        <>
          <span>Put back</span> {act('Take back', 'TAKE_BACK')}
        </>
      )}
      {decision === 'kept' && (
        <>
          <span>Kept</span> {act('Reconsider', 'RECONSIDER')}
        </>
      )}
      {decision === null && (
        <>
          {act('Keep', 'KEEP')} {act('Revert', 'REVERT')}
        </>
      )}
    </span>
  );
}

function Change({ section }: { readonly section: FileSection }) {
  const rows = useMemo(() => rowsOfSection(section), [section]);
  const { isBinary, kind, additions, deletions } = section.file;
  if (rows) return <Sides rows={rows} />;
  if (isBinary) return <p class="quiet">Not a text, or too large to compare.</p>;
  if (kind === 'directory' || additions + deletions === 0) return <p class="quiet">No lines changed.</p>;
  return <p class="quiet">Too much changed to show this file here: oratorio diff.</p>;
}
