import { useState } from 'preact/hooks';
import { cutText } from '../../protocol/browser.ts';
import './json-tree.css';

/** Entries of one object or list that are shown before the user asks for more. */
const first = 100;
/** Characters of a text shown before the user asks for more. */
const firstChars = 2_000;
/** Objects within objects that are open from the beginning. */
const openDepth = 2;

/** Tree of a JSON value: objects and lists open and close, long ones load in pieces. Renders text nodes only. */
export function JsonTree({ value, label }: { readonly value: unknown; readonly label: string }) {
  return (
    <section class="json" aria-label={label}>
      <Value value={value} depth={0} />
    </section>
  );
}

interface NodeProps {
  readonly name?: string | undefined;
  readonly value: unknown;
  readonly depth: number;
}

function Value({ name, value, depth }: NodeProps) {
  if (typeof value === 'object' && value !== null) return <Branch name={name} value={value} depth={depth} />;
  return (
    <div class="json-leaf">
      <Name name={name} />
      {typeof value === 'string' ? <Text text={value} /> : <span class={typeof value}>{String(value)}</span>}
    </div>
  );
}

const Name = ({ name }: { readonly name?: string | undefined }) =>
  name === undefined ? null : (
    <>
      <span class="json-name">{name}</span>:{' '}
    </>
  );

function Branch({ name, value, depth }: NodeProps & { readonly value: object }) {
  const [isOpen, setOpen] = useState(depth < openDepth);
  const [most, setMost] = useState(first);
  const entries = Object.entries(value);
  const isList = Array.isArray(value);
  const size = isList ? `[${entries.length}]` : `{${entries.length}}`;
  if (entries.length === 0) {
    return (
      <div class="json-leaf">
        <Name name={name} />
        {isList ? '[]' : '{}'}
      </div>
    );
  }
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Name name={name} />
        <span class="quiet">{size}</span>
      </summary>
      {/* A closed entry has no children yet: a value may be nested deeply. */}
      {isOpen &&
        entries.slice(0, most).map(([key, each]) => <Value key={key} name={key} value={each} depth={depth + 1} />)}
      {isOpen && entries.length > most && (
        <button type="button" class="bare" onClick={() => setMost(most + first * 10)}>
          {entries.length - most} more
        </button>
      )}
    </details>
  );
}

function Text({ text }: { readonly text: string }) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? text : cutText(text, firstChars);
  const hidden = text.length - shown.length;
  return (
    <span class="string">
      "{shown}
      {hidden === 0 ? (
        '"'
      ) : (
        <button type="button" class="bare" onClick={() => setWhole(true)}>
          {hidden} more characters
        </button>
      )}
    </span>
  );
}
