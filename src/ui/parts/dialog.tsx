import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { Glyph } from './glyphs.tsx';

/** A modal dialog while it is rendered; the browser keeps the focus inside, Esc and a click beside it close it. */
export function Dialog({
  title,
  label,
  onClose,
  children,
  class: more = '',
}: {
  /** Heading of the dialog; absent: no heading, and `label` names the dialog. */
  readonly title?: string;
  readonly label?: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly class?: string;
}) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  // Before the next key press arrives: a letter typed right after the opening key belongs to the dialog.
  useLayoutEffect(() => {
    const dialog = element.current;
    if (dialog && !dialog.open) dialog.showModal();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Esc is the keyboard's way to close it
    <dialog
      ref={element}
      class={`dialog ${more}`}
      {...(title === undefined ? { 'aria-label': label } : { 'aria-labelledby': heading })}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === element.current) element.current?.close();
      }}
    >
      {title !== undefined && (
        <header>
          <h2 id={heading}>{title}</h2>
          <button type="button" class="bare" aria-label="Close" onClick={() => element.current?.close()}>
            <Glyph name="close" />
          </button>
        </header>
      )}
      {children}
    </dialog>
  );
}

/** Asks before an action that cannot be undone; the children name the data that is lost and the data that stays. */
export function Confirm({
  title,
  action,
  cancel = 'Keep it',
  onConfirm,
  onClose,
  children,
}: {
  readonly title: string;
  /** The words on the button: `Delete job`. */
  readonly action: string;
  /** The words on the other button. */
  readonly cancel?: string;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) {
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="inside">
        {children}
        <footer>
          <button type="button" onClick={onClose}>
            {cancel}
          </button>
          <button type="button" class="danger" onClick={onConfirm}>
            {action}
          </button>
        </footer>
      </div>
    </Dialog>
  );
}
