// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// Searches the sections of the manual. The index is a file beside this one, read at first use.
(function () {
	var field = document.getElementById("search");
	var list = document.getElementById("found");
	var script = document.currentScript.getAttribute("src");
	var root = script.slice(0, script.length - "search.js".length);
	var asked = false;

	function load() {
		if (asked)
			return;
		asked = true;
		var index = document.createElement("script");
		index.src = root + "search-index.js";
		index.onload = look;
		document.head.appendChild(index);
	}

	// 0 unless the section has all words; more for those of headings.
	function score(section, words) {
		var sum = 0;
		for (var word of words) {
			if (section.head.includes(word))
				sum += section.head === word ? 50 : 10;
			else if (section.low.includes(word))
				sum += 1;
			else
				return 0;
		}
		return sum;
	}

	function entry(section, word) {
		var item = document.createElement("li");
		var link = document.createElement("a");
		var at = Math.max(0, section.low.indexOf(word) - 40);

		link.href = root + section[0];
		link.textContent = section[2] && section[2] !== section[1] ?
			section[1] + ": " + section[2] : section[1];
		item.appendChild(link);
		item.appendChild(document.createElement("br"));
		item.appendChild(document.createTextNode(section[3].slice(at, at + 100)));
		return item;
	}

	function look() {
		var words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
		var found = [];

		list.replaceChildren();
		if (!words.length || !window.kdaplIndex)
			return load();
		for (var section of window.kdaplIndex) {
			if (section.low === undefined) {
				section.low = section[3].toLowerCase();
				section.head = (section[2] || section[1]).toLowerCase();
			}
			var points = score(section, words);
			if (points)
				found.push([points, section]);
		}
		found.sort(function (a, b) { return b[0] - a[0]; });
		for (var one of found.slice(0, 20))
			list.appendChild(entry(one[1], words[0]));
		if (!found.length) {
			var none = document.createElement("li");
			none.textContent = "nothing has all of these words";
			list.appendChild(none);
		}
	}

	field.hidden = false;		// of no use without scripts
	field.addEventListener("focus", load);
	field.addEventListener("input", look);
	document.addEventListener("keydown", function (event) {
		if (event.key === "/" && document.activeElement !== field) {
			event.preventDefault();
			field.focus();
		}
	});
})();
