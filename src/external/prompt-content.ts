import type { ContentPart } from '../agent/index.ts';

/** Content of a prompt. Images without data are named by their address. */
export function promptOf(input: readonly ContentPart[]): readonly unknown[] {
  return input.map((part) => {
    if (part.type === 'text') return { type: 'text', text: part.text };
    const data = /^data:([^;,]+);base64,(.*)$/s.exec(part.url);
    if (!data) return { type: 'text', text: `Image: ${part.url}` };
    return { type: 'image', mimeType: data[1], data: data[2] };
  });
}
