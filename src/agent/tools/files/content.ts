/** Detects the kind of a file's bytes, and the encoding of text. */
import { ascii, hasBytes, pictureType } from '../../picture-formats.ts';

export type TextEncoding = 'utf-8' | 'utf-16le' | 'utf-16be';

export interface EncodedText {
  readonly encoding: TextEncoding;
  /** Length of the byte order mark, in bytes. */
  readonly bomBytes: number;
}

export type Sniffed =
  | ({ readonly kind: 'text' } & EncodedText)
  | { readonly kind: 'image'; readonly mimeType: string }
  /** `label`: its probable kind, in words. */
  | { readonly kind: 'binary'; readonly label: string };

/** Number of bytes that `sniff` needs. */
export const sniffBytes = 8_192;

/** Bytes at the beginning of a file, or further on, that reveal its kind. */
const signatures: readonly { readonly label: string; readonly bytes: readonly number[]; readonly at?: number }[] = [
  { label: 'a PDF document', bytes: ascii('%PDF-') },
  { label: 'a ZIP archive', bytes: [0x50, 0x4b, 0x03, 0x04] },
  { label: 'gzip data', bytes: [0x1f, 0x8b] },
  { label: 'bzip2 data', bytes: ascii('BZh') },
  { label: 'xz data', bytes: [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00] },
  { label: 'Zstandard data', bytes: [0x28, 0xb5, 0x2f, 0xfd] },
  { label: 'a tar archive', bytes: ascii('ustar'), at: 257 },
  { label: 'a 7z archive', bytes: [0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c] },
  { label: 'an ELF executable', bytes: [0x7f, 0x45, 0x4c, 0x46] },
  { label: 'a Mach-O executable', bytes: [0xcf, 0xfa, 0xed, 0xfe] },
  { label: 'a Windows executable', bytes: ascii('MZ') },
  { label: 'WebAssembly', bytes: [0x00, 0x61, 0x73, 0x6d] },
  { label: 'Java classes', bytes: [0xca, 0xfe, 0xba, 0xbe] },
  { label: 'an SQLite database', bytes: ascii('SQLite format 3\0') },
  { label: 'a video', bytes: ascii('ftyp'), at: 4 },
  { label: 'audio', bytes: ascii('ID3') },
  { label: 'audio or video', bytes: ascii('OggS') },
  { label: 'a font', bytes: ascii('wOF') },
  { label: 'a bitmap', bytes: ascii('BM') },
];

/** Detects the kind from the first `sniffBytes` of a file, or all of it when it is shorter. */
export function sniff(head: Uint8Array): Sniffed {
  const mimeType = pictureType(head);
  if (mimeType !== undefined) return { kind: 'image', mimeType };
  if (hasBytes(head, [0xef, 0xbb, 0xbf])) return { kind: 'text', encoding: 'utf-8', bomBytes: 3 };
  // The mark of UTF-32 begins like the mark of UTF-16; NUL is not text.
  const isUtf16 = head.length >= 2 && !hasBytes(head, [0xff, 0xfe, 0x00, 0x00]);
  if (isUtf16 && hasBytes(head, [0xff, 0xfe])) return { kind: 'text', encoding: 'utf-16le', bomBytes: 2 };
  if (isUtf16 && hasBytes(head, [0xfe, 0xff])) return { kind: 'text', encoding: 'utf-16be', bomBytes: 2 };
  if (!isBinary(head)) return { kind: 'text', encoding: 'utf-8', bomBytes: 0 };
  const known = signatures.find(({ bytes, at }) => hasBytes(head, bytes, at));
  return { kind: 'binary', label: known?.label ?? 'unknown data' };
}

/** Whether bytes without a known encoding are not text: NUL, or control characters all over. */
function isBinary(head: Uint8Array): boolean {
  let controls = 0;
  for (const byte of head) {
    if (byte === 0) return true;
    const isControl = byte < 32 && !(byte >= 7 && byte <= 13) && byte !== 27;
    if (isControl) controls += 1;
  }
  // Formats without a NUL at their beginning: PDF, compressed data.
  return controls * 10 > head.length || (hasBytes(head, ascii('%PDF-')) && head.some((byte) => byte >= 128));
}

/** The whole text of a file without its mark; invalid bytes become U+FFFD. */
export function decodeText(bytes: Uint8Array, { encoding, bomBytes }: EncodedText): string {
  return new TextDecoder(encoding, { ignoreBOM: true }).decode(bytes.subarray(bomBytes));
}

/** The bytes of a text, its mark before it. */
export function encodeText(text: string, { encoding, bomBytes }: EncodedText): Buffer {
  const marked = bomBytes > 0 ? `\uFEFF${text}` : text;
  if (encoding === 'utf-8') return Buffer.from(marked, 'utf8');
  const bytes = Buffer.from(marked, 'utf16le');
  return encoding === 'utf-16be' ? bytes.swap16() : bytes;
}
