/** Makes the browser save a text as a file. */
export function download(name: string, text: string, type = 'text/plain'): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // By then, the browser has started the download.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** File name with the current time: `events-20261121-140702.jsonl`. */
export function fileName(what: string, extension: string): string {
  const at = new Date().toISOString().replace(/[-:]/g, '').replace('T', '-').slice(0, 15);
  return `${what}-${at}.${extension}`;
}
