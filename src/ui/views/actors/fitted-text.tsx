import { useLayoutEffect, useRef } from 'preact/hooks';

interface FittedTextProps {
  readonly class: string;
  readonly x: number;
  readonly y: number;
  readonly text: string;
  /** Largest width, in the units of the drawing. */
  readonly room: number;
}

/** One line of text, condensed if the system's font is wider than the font that the drawing was made for. */
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
