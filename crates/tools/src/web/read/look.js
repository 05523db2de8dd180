(maxChars => {
  // Elements without text of the page, and those that lead elsewhere. Their content is left out too.
  const NEVER = new Set([
    'script', 'style', 'noscript', 'template', 'svg', 'canvas', 'iframe', 'object', 'link', 'meta', 'nav', 'footer',
    'noembed', 'noframes',
  ]);
  // Elements whose text may contain a bare `<`, which would be parsed as an element.
  const RAW = new Set(['xmp', 'plaintext']);
  // The weight of an element, which bounds the copy of a page without text.
  const ELEMENT = 8;
  const MAX_CHARS = 4 * 1024 * 1024;
  const LINKS = 50;
  const LOOKED_AT = 2000;
  // The most characters of an address.
  const ADDRESS = 4096;

  // A form can replace these properties by controls of the same name.
  const parent = Object.getOwnPropertyDescriptor(Node.prototype, 'parentNode').get;
  const add = Node.prototype.appendChild;

  // Copies the beginning of the document, up to `maxChars` characters of text. The copy has no window, so
  // it loads nothing and runs nothing.
  function beginning(root) {
    const inert = document.implementation.createHTMLDocument('');
    const isText = node => (NEVER.has(node.localName) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, isText);
    const copies = new Map([[root, inert.importNode(root, false)]]);
    let left = maxChars;
    while (left > 0 && walker.nextNode()) {
      const node = walker.currentNode;
      const copy = RAW.has(node.localName) ? inert.createElement('pre') : inert.importNode(node, false);
      if (copy instanceof Text) {
        copy.data = copy.data.slice(0, left);
        left -= copy.data.trim().length;
      } else {
        left -= ELEMENT;
      }
      if (node instanceof HTMLAnchorElement && node.getAttribute('href')) copy.setAttribute('href', node.href);
      if (node instanceof HTMLImageElement && /^(data|blob):/.test(node.src)) copy.removeAttribute('src');
      add.call(copies.get(parent.call(node)), copy);
      copies.set(node, copy);
    }
    return [copies.get(root).outerHTML, left <= 0];
  }

  function links() {
    const here = location.href.split('#')[0];
    const found = new Map();
    for (let n = 0; n < document.links.length && n < LOOKED_AT && found.size < LINKS; n++) {
      const link = document.links[n];
      const url = link.href.split('#')[0];
      if (found.has(url) || url === here || !/^https?:/.test(url)) continue;
      const text = link.textContent.trim().replace(/\s+/g, ' ').slice(0, 80);
      if (text) found.set(url, text);
    }
    return [...found].map(([url, text]) => ({ text, url: url.slice(0, ADDRESS) }));
  }

  const root = document.documentElement;
  const isHtml = /html|xml/.test(document.contentType);
  const plain = isHtml || !root ? null : (document.body || root).innerText;
  const [html, isCut] = isHtml && root && maxChars > 0 ? beginning(root) : ['', (plain || '').length > MAX_CHARS];
  const entry = performance.getEntriesByType('navigation')[0];
  return {
    url: location.href.slice(0, ADDRESS),
    title: document.title.trim().replace(/\s+/g, ' ').slice(0, 300),
    status: (entry && entry.responseStatus) || 0,
    html: html.slice(0, MAX_CHARS),
    text: plain && plain.slice(0, MAX_CHARS),
    cut: isCut || html.length > MAX_CHARS,
    links: links(),
    allLinks: document.links.length,
  };
})
