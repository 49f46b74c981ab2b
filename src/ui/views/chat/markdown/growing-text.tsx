import { Component, createRef } from 'preact';

interface TextProps {
  readonly text: string;
}

/** Text that may grow. Replaces only the changed end, so that a selection before it is preserved. */
export class GrowingText extends Component<TextProps> {
  readonly #span = createRef<HTMLSpanElement>();

  override shouldComponentUpdate({ text }: TextProps): boolean {
    const node = this.#span.current?.firstChild;
    if (!(node instanceof Text)) return true;
    const { data } = node;
    let same = text.startsWith(data) ? data.length : 0;
    while (same < data.length && data[same] === text[same]) same += 1;
    if (same < data.length || same < text.length) node.replaceData(same, data.length - same, text.slice(same));
    return false;
  }

  override render({ text }: TextProps) {
    return <span ref={this.#span}>{text}</span>;
  }
}
