import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import './filter-bar.css';
import { Glyph } from './glyphs.tsx';
import { isComposing } from './typing.ts';

/** Filter that one press switches on or off. */
export interface Pill {
  readonly key: string;
  readonly label: string;
  readonly title?: string;
  readonly isOn: boolean;
  readonly toggle: () => void;
}

/** Active condition; a press removes it. */
export interface Chip {
  readonly key: string;
  readonly label: string;
  readonly remove: () => void;
}

export interface FilterBarProps {
  /** Name of the box for assistive technology. */
  readonly label: string;
  readonly placeholder: string;
  /** Text of the box. */
  readonly text: string;
  /** Called on each change of the text. */
  readonly onText: (text: string) => void;
  /** Enter: turn the typed text into a condition. */
  readonly onCommit?: () => void;
  readonly chips?: readonly Chip[];
  readonly pills?: readonly Pill[];
  /** Parts of the text that are not understood. */
  readonly fault?: string | undefined;
  /** Number of matches: `12 of 3 410`. */
  readonly summary?: string | undefined;
  /** Input that `/` focuses. */
  readonly box?: { current: HTMLInputElement | null };
  /** More tools at the end. */
  readonly children?: ComponentChildren;
}

/** Filter of a list: a text box, chips for active conditions, and buttons for the usual ones. Esc empties the box. */
export function FilterBar(props: FilterBarProps) {
  const { chips = [], pills = [], fault } = props;
  const faultId = useId();
  const onKeyDown = (event: KeyboardEvent) => {
    if (isComposing(event)) return;
    if (event.key === 'Enter' && props.onCommit) props.onCommit();
    else if (event.key === 'Backspace' && props.text === '' && chips.length > 0) chips.at(-1)?.remove();
    else if (event.key === 'Escape' && event.currentTarget instanceof HTMLElement) {
      if (props.text === '') event.currentTarget.blur();
      else props.onText('');
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <search class="filter-bar">
      <div class="filter-box">
        <Glyph name="search" />
        {chips.map(({ key, label, remove }) => (
          <button key={key} type="button" class="chip" aria-label={`Remove filter ${label}`} onClick={remove}>
            <span class="cut">{label}</span>
            <Glyph name="close" />
          </button>
        ))}
        <input
          ref={props.box ?? null}
          type="text"
          spellcheck={false}
          autocomplete="off"
          aria-label={props.label}
          aria-invalid={fault !== undefined}
          aria-describedby={fault === undefined ? undefined : faultId}
          placeholder={chips.length === 0 ? props.placeholder : ''}
          value={props.text}
          onInput={(event) => props.onText(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        <kbd>/</kbd>
      </div>
      {pills.map(({ key, label, title, isOn, toggle }) => (
        <button key={key} type="button" class="pill-button" title={title} aria-pressed={isOn} onClick={toggle}>
          {label}
        </button>
      ))}
      {props.summary !== undefined && <span class="quiet count">{props.summary}</span>}
      {props.children}
      {fault !== undefined && (
        <p id={faultId} class="fault danger" role="alert">
          {fault}
        </p>
      )}
    </search>
  );
}
