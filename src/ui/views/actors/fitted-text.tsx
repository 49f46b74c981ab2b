import { useLayoutEffect, useRef } from 'preact/hooks';

interface FittedTextProps {
  readonly class: string;
  readonly x: number;
  readonly y: number;
  readonly text: string;
  /** Widest that it may be, in the units of the drawing. */
  readonly room: number;
}

/** One line that is narrowed where the font of this system is wider than the one that the drawing left room for. */
export function FittedText({ text, room, ...rest }: FittedTextProps) {
  const line = useRef<SVGTextElement>(null);
  useLayoutEffect(() => {
    const element = line.current;
    if (!element) return;
    element.removeAttribute('textLength');
    if (element.getComputedTextLength() <= room) return;
    element.setAttribute('lengthAdjust', 'spacingAndGlyphs');
    element.setAttribute('textLength', String(room));
  }, [text, room]);
  return (
    <text ref={line} {...rest}>
      {text}
    </text>
  );
}
