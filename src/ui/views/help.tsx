import { useEffect, useRef } from 'preact/hooks';
import type { Store } from '../state/store.ts';

const keys: readonly (readonly [string, string])[] = [
  ['↑ ↓ ← →', 'Move in the tree of actors'],
  ['/', 'Filter actors by name or state'],
  ['f', 'Show the whole chart'],
  ['o', 'Follow the active state'],
  ['+ −', 'Zoom; the wheel does it too'],
  ['?', 'This help'],
  ['Esc', 'Close, or clear the filter'],
];

export function Help({ store }: { readonly store: Store }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const isOpen = store.helpIsOpen.value;
  useEffect(() => {
    if (isOpen && !dialog.current?.open) dialog.current?.showModal();
    else if (!isOpen) dialog.current?.close();
  }, [isOpen]);
  const close = () => {
    store.helpIsOpen.value = false;
  };
  return (
    <dialog ref={dialog} class="help" aria-label="Help" onClose={close}>
      <h2>Keys</h2>
      <dl>
        {keys.map(([key, meaning]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <h2>Reading a chart</h2>
      <p>
        A box is a state; lit ones are active. An arrow is a transition: its event, with its [guard]. ◌ runs while the
        state is active, ↘ happens on the way in, ↗ on the way out. Events inside a box are handled without leaving it.
        A dot marks where a compound state begins.
      </p>
      <button type="button" onClick={close}>
        Close
      </button>
    </dialog>
  );
}
